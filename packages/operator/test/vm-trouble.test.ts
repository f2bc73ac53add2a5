import { once } from 'node:events';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Cloud,
  field,
  type KubeObject,
  Part,
  startCloud,
  startVcsim,
  temporaryFolder,
} from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Installed, installed, SYSTEM } from './installed.ts';
import { VMS } from './with-cloud.ts';
import { GROUPS, TEMPLATE } from './with-vcenter.ts';

const stack = new AsyncDisposableStack();
let it: Installed;
let cloud: Cloud;
/** In which the operator finds its key. */
let keyFile: string;

beforeAll(async () => {
  cloud = stack.use(await startCloud());
  const vcsim = stack.use(
    await startVcsim({ inventory: { standaloneHosts: 0, vms: 2 }, templates: [TEMPLATE] }),
  );
  keyFile = join(await temporaryFolder('key'), 'key');
  await writeFile(keyFile, `${cloud.apiKey}\n`);
  it = await installed(stack, {
    cloud,
    vcsim,
    // One VM at a time: what is stuck on the cloud then leaves no worker for anything else.
    args: [
      ...['--vm-refresh=1s', '--vm-sweep=1s', '--cloud-timeout=1s', '--vm-concurrency=1'],
      '--vm-unknown-after=3s',
      '--log-level=debug',
    ],
    env: { CLOUD_API_KEY: '', CLOUD_API_KEY_FILE: keyFile },
  });
}, 180_000);
afterAll(() => stack.disposeAsync());

/** A trouble grows the time between two tries, to a minute at most. */
const LONG = { timeoutMs: 150_000 };
const TEST_MS = 300_000;

const create = (name: string) =>
  it.controlPlane.cluster.api.create(VMS, {
    apiVersion: 'samplecontroller.k8s.io/v1alpha1',
    kind: 'VM',
    metadata: { name },
    spec: { vmname: `vm${name}` },
  });
const until = (name: string, is: (vm: KubeObject) => boolean) =>
  it.controlPlane.cluster.waitFor(`${VMS}/${name}`, is, LONG);
const gone = (name: string) => it.controlPlane.cluster.waitForGone(`${VMS}/${name}`, LONG);
const remove = (...names: readonly string[]) =>
  it.kubectl('delete', '--wait=false', 'vms.samplecontroller.k8s.io', ...names);
const status = (vm: KubeObject, name: string) => field(vm, 'status', name);
const ready = (vm: KubeObject): unknown =>
  [status(vm, 'conditions') ?? []].flat().find((each) => field(each, 'type') === 'Ready');
const isRunning = (vm: KubeObject) => status(vm, 'opStatus') === 'Running';
const isFor = (reason: string) => (vm: KubeObject) => field(ready(vm), 'reason') === reason;
const isLeavingFor = (reason: string) => (vm: KubeObject) =>
  status(vm, 'opStatus') === 'Deleting' && isFor(reason)(vm);
const vmIdOf = async (name: string) => status(await until(name, isRunning), 'vmId');

/** VMs that run. */
async function running(...names: readonly string[]): Promise<void> {
  await Promise.all(names.map(create));
  await Promise.all(names.map((name) => until(name, isRunning)));
}

/** The names of the cloud's machines, past the operator. */
async function machines(): Promise<readonly unknown[]> {
  const page: unknown = await (await cloud.fetch('/servers?limit=1000')).json();
  return [field(page, 'items')].flat().map((server) => field(server, 'name'));
}

test(
  'a key that the cloud rejects is reported without naming settings or the key; once it is replaced, everything continues',
  async () => {
    await running('locked', 'leaving');
    const vmId = await vmIdOf('locked');
    const newKey = 'another-0123456789abcdef';
    const sentence =
      "The cloud rejects the operator's API key. An administrator of the operator has to replace it";
    {
      await using _ = await withOtherKey(newKey);
      const told = await until('locked', isFor('CloudUnauthorized'));
      expect(ready(told)).toMatchObject({ status: 'Unknown', message: sentence });
      expect(told.status).toMatchObject({ opStatus: 'Unknown', msg: sentence, vmId });
      await remove('leaving');
      expect(status(await until('leaving', isLeavingFor('CloudUnauthorized')), 'msg')).toBe(
        `Waiting to delete the machine. ${sentence}`,
      );
      await expect(create('refused')).rejects.toThrow(
        `The vmname "vmrefused" could not be checked. ${sentence}`,
      );

      await replaceKey(newKey);
      expect(await vmIdOf('locked')).toBe(vmId);
      await gone('leaving');
      await running('unlocked');
    }
    expect(await machines()).toEqual(expect.arrayContaining(['vmlocked', 'vmunlocked']));
    expect(await machines()).not.toContain('vmleaving');

    const said = await whatItSays();
    for (const key of [newKey, cloud.apiKey])
      for (const [where, text] of Object.entries(said))
        expect(text.includes(key), `a key is in the ${where}`).toBe(false);
    expect(said.log).toContain('UnauthorizedError'); // it does speak of it
  },
  TEST_MS,
);

test(
  'a key file that cannot be read, or holds no key, is reported without naming settings; once it is restored, everything continues',
  async () => {
    await running('unread', 'unread-leaving');
    const vmId = await vmIdOf('unread');
    const sentence =
      'The operator cannot read its API key. An administrator of the operator has to restore it';
    const away = join(dirname(keyFile), 'away');
    await rename(keyFile, away);
    try {
      const told = await until('unread', isFor('CloudUnauthorized'));
      expect(ready(told)).toMatchObject({ status: 'Unknown', message: sentence });
      expect(told.status).toMatchObject({ opStatus: 'Unknown', msg: sentence, vmId });
      expect(status(told, 'cpuUtilization')).toBeUndefined();
      await remove('unread-leaving');
      expect(status(await until('unread-leaving', isLeavingFor('CloudUnauthorized')), 'msg')).toBe(
        `Waiting to delete the machine. ${sentence}`,
      );
      await expect(create('refused')).rejects.toThrow(
        `The vmname "vmrefused" could not be checked. ${sentence}`,
      );
    } finally {
      await rename(away, keyFile);
    }
    await gone('unread-leaving');
    expect(await vmIdOf('unread')).toBe(vmId);

    for (const content of [`${cloud.apiKey}\nanother`, '']) {
      await replaceKey(content);
      expect(status(await until('unread', isFor('CloudUnauthorized')), 'msg')).toBe(sentence);
      await replaceKey(cloud.apiKey);
      expect(await vmIdOf('unread')).toBe(vmId);
    }
    const said = await whatItSays();
    expect(said.log).toContain('CLOUD_API_KEY_FILE names ');
    expect(Object.values(said).join('\n')).not.toContain(cloud.apiKey);
  },
  TEST_MS,
);

/** The same cloud, its port and its data, as who has changed its keys starts it; until it is disposed of. */
async function withOtherKey(key: string): Promise<AsyncDisposable> {
  const main = fileURLToPath(new URL('../../cloud/src/main.ts', import.meta.url));
  const { dir } = cloud.part;
  await cloud.part.kill();
  const part = await Part.start({
    name: 'cloud',
    command: process.execPath,
    args: [
      ...['--disable-warning=ExperimentalWarning', main, 'serve', '--listen', new URL(cloud.url).host],
      ...['--data', join(dir, 'cloud.sqlite'), '--config', join(dir, 'config.json')],
    ],
    env: { CLOUD_API_KEYS: key },
    dir,
    ready: async () => (await fetch(`${cloud.url}/readyz`, { headers: { connection: 'close' } })).ok,
  });
  return {
    [Symbol.asyncDispose]: async () => {
      await part[Symbol.asyncDispose]();
      await replaceKey(cloud.apiKey);
      await cloud.part.start();
    },
  };
}

/** As a Secret's volume does it: the file is another one at once. */
async function replaceKey(key: string): Promise<void> {
  const next = join(dirname(keyFile), 'next');
  await writeFile(next, `${key}\n`);
  await rename(next, keyFile);
}

async function whatItSays() {
  const all = (resource: string) => it.kubectl('get', '--all-namespaces', '-o', 'json', resource);
  return {
    objects: await all('vms.samplecontroller.k8s.io'),
    events: await all('events.events.k8s.io'),
    leases: await all('leases.coordination.k8s.io'),
    metrics: await it.metrics(it.operator),
    log: await readFile(it.operator.log, 'utf8'),
  };
}

describe('asked by 429 and Retry-After to wait, the whole operator leaves the cloud alone for as long, and goes on then', () => {
  test.each([
    { seconds: 2, rests: 8 }, // a short one, waited for within a call
    { seconds: 7, rests: 3 }, // one for which the call is given up
  ])(
    'for $seconds seconds',
    async ({ seconds, rests }) => {
      const leaving = [1, 2, 3, 4].map((each) => `busy-${seconds}-${each}`);
      const staying = `calm-${seconds}`;
      await running(...leaving, staying);
      const vmId = await vmIdOf(staying);
      {
        await using busy = await busyCloud(seconds);
        await remove(...leaving);
        await busy.rested(rests);
        const gaps = (requests: readonly Asked[], senders: number) =>
          requests.slice(senders).map(({ at }, index) => at - (requests[index]?.at ?? 0));
        // One of each at a time: the worker, the refresh, the sweeper. Who is answered is silent for as long as it says.
        expect(busy.asked.length).toBeGreaterThan(2);
        expect(
          gaps(busy.asked, 3).filter((ms) => ms < seconds * 1_000 - TIMER_MS),
          story(busy.asked),
        ).toEqual([]);
        const byWorker = busy.asked.filter(({ path }) => !/label=vmwright.dev%2Fcluster/.test(path));
        expect(
          gaps(byWorker, 1).filter((ms) => ms < seconds * 1_000 - TIMER_MS),
          story(byWorker),
        ).toEqual([]);
        const told = await until(leaving[0] ?? '', isLeavingFor('CloudBusy'));
        expect(status(told, 'msg')).toBe(
          'Waiting to delete the machine. The cloud asked to back off (Retry-After); retrying automatically',
        );
      }
      await Promise.all(leaving.map(gone));
      expect(await vmIdOf(staying)).toBe(vmId);
      expect((await machines()).filter((name) => String(name).startsWith('vmbusy'))).toEqual([]);
    },
    TEST_MS,
  );
});

/** By which a timer may be early. */
const TIMER_MS = 20;

interface Asked {
  readonly at: number;
  readonly method: string;
  readonly path: string;
}

const story = (asked: readonly Asked[]) =>
  asked.map(({ at, method, path }) => `${Math.round(at)} ${method} ${path}`).join('\n');

interface BusyCloud extends AsyncDisposable {
  readonly asked: readonly Asked[];
  /** Until so many rests have passed since it was asked first; by the first request after them. */
  rested(times: number): Promise<void>;
}

/**
 * Who stands in the cloud's place until it is disposed of, and has no time for anybody: the cloud itself cannot be told
 * for how long.
 */
async function busyCloud(seconds: number): Promise<BusyCloud> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const { method = '', url: path = '' } = request;
    asked.push({ at: performance.now(), method, path });
    response.writeHead(429, { 'retry-after': String(seconds), 'content-type': 'text/plain' });
    response.end('too many requests');
  });
  const { hostname, port } = new URL(cloud.url);
  await cloud.part.kill();
  server.listen(Number(port), hostname);
  await once(server, 'listening');
  const span = () => (asked.at(-1)?.at ?? 0) - (asked[0]?.at ?? 0);
  return {
    asked,
    rested: async (times) => {
      while (asked.length === 0 || span() < times * seconds * 1_000) await once(server, 'request');
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      await cloud.part.start();
    },
  };
}

test(
  'while the cloud hangs, work of other kinds goes on; what is deleted waits and says why, and goes when the cloud is back',
  async () => {
    const names = ['hangs', 'leaves-1', 'leaves-2', 'leaves-3'];
    await running(...names);
    const vmId = await vmIdOf('hangs');
    const leader = await leaseOf();
    cloud.part.pause();
    try {
      const told = await until('hangs', isFor('CloudUnreachable'));
      const sentence = 'The cloud does not answer; retrying automatically';
      expect(ready(told)).toMatchObject({ status: 'Unknown', message: sentence });
      expect(told.status).toMatchObject({ opStatus: 'Unknown', vmId });
      await remove('leaves-1', 'leaves-2', 'leaves-3');

      const { cluster } = it.controlPlane;
      await cluster.api.create(GROUPS, {
        apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
        kind: 'VmGroup',
        metadata: { name: 'goes-on' },
        spec: { replicas: 2, cpu: 1, memory: 1, template: TEMPLATE },
      });
      await cluster.waitFor(`${GROUPS}/goes-on`, ({ status: its }) => field(its, 'readyReplicas') === 2);
      await cluster.api.delete(`${GROUPS}/goes-on`);
      await cluster.waitForGone(`${GROUPS}/goes-on`);

      for (const name of ['leaves-1', 'leaves-2', 'leaves-3'])
        expect(status(await until(name, isLeavingFor('CloudUnreachable')), 'msg')).toBe(
          `Waiting to delete the machine. ${sentence}`,
        );
      expect(await leaseOf()).toEqual(leader);
    } finally {
      cloud.part.resume();
    }
    await Promise.all(['leaves-1', 'leaves-2', 'leaves-3'].map(gone));
    expect(await vmIdOf('hangs')).toBe(vmId);
    const left = await machines();
    expect(left.filter((name) => /^vm(hangs|leaves)/.test(String(name)))).toEqual(['vmhangs']);
  },
  TEST_MS,
);

/** Who leads, and how often that has changed. */
async function leaseOf() {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases/vmwright`;
  const { spec } = await it.controlPlane.cluster.api.get(path);
  return { holder: field(spec, 'holderIdentity'), changes: field(spec, 'leaseTransitions') };
}
