import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { clientOf, resetFaults } from '../../test/vcenter.ts';
import type { Ref, VcenterClient } from '../index.ts';
import { HostNames } from './host-names.ts';

const unlisted: Ref<'HostSystem'> = { type: 'HostSystem', value: 'host-none' };
let vcsim: Vcsim;
let client: VcenterClient;
let hosts: readonly Ref[];
let now: number;
let names: HostNames;

beforeAll(async () => {
  vcsim = await startVcsim({ inventory: { hosts: 2, standaloneHosts: 1, vms: 0 } });
  client = clientOf(vcsim);
  hosts = (await client.list('HostSystem', ['name'])).map(({ ref }) => ref);
});
afterAll(async () => {
  await client.stop();
  await vcsim[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await resetFaults(vcsim);
  await vcsim.control.resetCalls();
  now = 0;
  names = new HostNames({ monotonic: () => now }, client);
});

async function requests(): Promise<number> {
  return (await vcsim.control.calls()).RetrievePropertiesEx ?? 0;
}

function shown(): readonly string[] {
  return hosts.map((host) => names.get(host)).sort();
}

test('get returns the reference of a host before the first load, and the name of the host afterwards', async () => {
  expect(shown()).toEqual(hosts.map(({ value }) => value).sort());
  await names.load(hosts.slice(0, 1));
  expect(shown()).toEqual(['DC0_C0_H0', 'DC0_C0_H1', 'DC0_H0']);
});

test('load sends no request when all names are cached', async () => {
  await names.load([]);
  expect(await requests()).toBe(0);
  await names.load(hosts);
  await names.load(hosts);
  expect(await requests()).toBe(1);
});

test('concurrent loads share one request', async () => {
  await Promise.all([names.load(hosts), names.load(hosts), names.load(hosts.slice(1))]);
  expect(await requests()).toBe(1);
});

test('a host that vCenter does not list is requested again only after a minute', async () => {
  await names.load([unlisted]);
  now = 60_000;
  await names.load([unlisted]);
  expect(await requests()).toBe(1);
  now = 60_001;
  await names.load([unlisted]);
  expect(await requests()).toBe(2);
  expect(names.get(unlisted)).toBe('host-none');
});

test('a failed load rejects, and the next load sends the request again', async () => {
  await vcsim.control.fault({ method: 'RetrievePropertiesEx', fault: 'NoPermission', max: 1 });
  await expect(names.load(hosts)).rejects.toMatchObject({ code: 'NO_PERMISSION' });
  await names.load(hosts);
  expect(shown()).toEqual(['DC0_C0_H0', 'DC0_C0_H1', 'DC0_H0']);
});
