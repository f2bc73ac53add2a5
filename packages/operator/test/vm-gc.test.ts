import { readFile } from 'node:fs/promises';
import type { Server } from '@vmwright/cloud';
import { field, type KubeObject } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { QUICK_ELECTION } from './installed.ts';
import { auditLines } from './log-lines.ts';
import { install, type WithCloud } from './with-cloud.ts';

const CLUSTER = 'production';
const ARGS = ['--vm-refresh=1s', '--vm-sweep=1s', `--cluster-id=${CLUSTER}`, ...QUICK_ELECTION];
const NEVER = '00000000-0000-4000-8000-000000000000';

const isRunning = (vm: KubeObject) => field(vm, 'status', 'opStatus') === 'Running';
const labelsFor = (uid: string, name = 'web') => ({
  'vmwright.dev/cluster': CLUSTER,
  'vmwright.dev/uid': uid,
  'vmwright.dev/namespace': 'default',
  'vmwright.dev/name': name,
});

let env: WithCloud;
beforeAll(async () => {
  env = await install({ args: ARGS });
});
afterAll(() => env[Symbol.asyncDispose]());

test('garbage collection deletes a server that was created after its VM was deleted, but no server of another cluster', async () => {
  const another = { ...labelsFor(NEVER), 'vmwright.dev/cluster': 'another' };
  const foreign = await env.client.create({ name: 'foreign', labels: another }, undefined);
  await lateCreate('web');
  await expect.poll(collected, { timeout: 60_000 }).toBe(1);
  await servers([foreign.id]);
  expect((await auditLines(env.operator, 'default/web')).at(-1)).toMatchObject({
    audit: 'collect',
    resource: 'Server',
    machineName: 'web-late',
  });
  await gauge(0);
  await env.client.delete(foreign.id);
  await servers([]);
}, 120_000);

test('garbage collection keeps and reports every server if the cluster was rebuilt without its VM objects', async () => {
  // The operator of a copied production cluster is in the same situation: it sees machines of VMs that exist only in
  // production.
  const kept = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      env.client.create(
        { name: `web-${n}`, labels: labelsFor(`${NEVER.slice(0, -1)}${n}`, `web-${n}`) },
        undefined,
      ),
    ),
  );
  await reported(ids(kept));
  const events = async () => {
    const selector = '--field-selector=reason=Orphaned';
    return JSON.parse(await env.kubectl('get', 'events', '-o', 'json', selector)).items;
  };
  await expect.poll(events).toHaveLength(10);
  expect((await events())[0]).toMatchObject({
    type: 'Warning',
    involvedObject: { kind: 'VM', namespace: 'default', name: expect.stringMatching(/^web-\d$/) },
    message: expect.stringMatching(/^server 'web-\d' \([0-9a-f-]{36}\) belongs to a VM that does not exist/),
  });
  await servers(ids(kept));
  const [, ...rows] = (await env.orphans()).trim().split('\n');
  expect(rows.map((row) => row.split(/ {3,}/)[1]).toSorted()).toEqual(ids(kept));
  expect(rows[0]).toMatch(/^VM +\S{36} +server 'web-\d' +default\/web-\d +0{8}\S{28} +\d+s$/);
  const lines = (await readFile(env.operator.log, 'utf8')).match(/belong to no VM/g) ?? [];
  expect(lines.length).toBeLessThanOrEqual(10);
  for (const { id } of kept) await env.client.delete(id);
  await servers([]);
  await gauge(0);
}, 120_000);

// Must be the last test, because it resets the cluster.
test('garbage collection keeps and reports the server of a VM that is missing after etcd was restored', async () => {
  await env.vm('old', 'old');
  await env.until('old', isRunning);
  const restore = await env.controlPlane.backup();
  await env.vm('new', 'new');
  await env.until('new', isRunning);
  const before = await env.servers();
  expect(before).toHaveLength(2);
  await restore();
  expect(await env.kubectl('get', 'vms.samplecontroller.k8s.io', '-o', 'name')).toBe(
    'vm.samplecontroller.k8s.io/old\n',
  );
  await env.operator.restart();
  await reported(ids(before.filter(({ name }) => name === 'new')));
  await servers(ids(before));
}, 180_000);

/**
 * Waits until these orphans are reported, and until a later run of garbage collection has kept them. To recognize that
 * run, creates a server for a deleted VM, which the run deletes. In that run, the metric of servers without a VM still
 * includes the deleted server, so the last line waits for the next run.
 */
async function reported(orphans: readonly string[]): Promise<void> {
  await gauge(orphans.length);
  const reports = async () => (await readFile(env.operator.log, 'utf8')).match(/"ids":\[[^\]]*\]/g) ?? [];
  const known = async () => (await reports()).flatMap((line) => line.match(/[0-9a-f-]{36}/g) ?? []);
  await expect.poll(known, { timeout: 60_000 }).toEqual(expect.arrayContaining([...orphans]));
  const before = await collected();
  await lateCreate('marker');
  await expect.poll(collected, { timeout: 60_000 }).toBe(before + 1);
  await gauge(orphans.length);
}

/** Waits until the cloud has exactly these servers. A server that was deleted exists until it has stopped. */
async function servers(expected: readonly string[]): Promise<void> {
  await expect.poll(async () => ids(await env.servers()), { timeout: 60_000 }).toEqual(expected);
}

/** Returns the number of servers that the operator's garbage collection has deleted. */
function collected(): Promise<number> {
  return env.metric('vmwright_vm_swept_total');
}

/** Waits until the operator's metric counts this many servers without a VM. */
async function gauge(orphans: number): Promise<void> {
  await expect.poll(() => env.metric('vmwright_vm_orphans'), { timeout: 60_000 }).toBe(orphans);
}

/** Creates a server for a deleted VM, like a create request that was delayed in the network. */
async function lateCreate(name: string): Promise<void> {
  const { metadata } = await env.vm(name, name);
  await env.until(name, isRunning);
  await env.kubectl('delete', 'vms.samplecontroller.k8s.io', name);
  await env.client.create({ name: `${name}-late`, labels: labelsFor(String(metadata.uid), name) }, undefined);
}

function ids(servers: readonly Server[]): readonly string[] {
  return servers.map(({ id }) => id).toSorted();
}
