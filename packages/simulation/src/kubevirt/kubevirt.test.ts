import { Client, type KubeObject } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import type { ApiServer } from '../apiserver/api-server.ts';
import { fieldAt } from '../apiserver/json.ts';
import { accessTo, startApiServer } from '../apiserver/simulated.ts';
import { find } from '../scenario/stored-objects.ts';
import { type Simulation, seeded } from '../world/simulation.ts';
import { type ImportBehaviour, startCdi } from './cdi.ts';
import type { Component } from './component.ts';
import { Claim, Instance, Machine, Snapshot, serveKubevirt, Volume } from './kinds.ts';
import { type SnapshotBehaviour, startProvisioner, startSnapshotter } from './storage.ts';
import { startVirtController } from './virt-controller.ts';

interface Env {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  readonly client: Client;
  readonly cdi: Component;
  importing: ImportBehaviour;
  snapshotting: SnapshotBehaviour;
  failingStarts: number;
}

const namespace = 'red';
const NEVER = Number.POSITIVE_INFINITY;

function setup(): Env {
  const simulation = seeded(1);
  const server = startApiServer(simulation);
  serveKubevirt(server);
  const cdi = startCdi({ simulation, server, behaviourOf: () => env.importing });
  startProvisioner(simulation, server);
  startSnapshotter({ simulation, server, behaviourOf: () => env.snapshotting });
  startVirtController({ simulation, server, startFails: () => env.failingStarts-- > 0 });
  const client = new Client({ world: simulation.start('user'), access: accessTo(), fieldManager: 'user' });
  const env: Env = { simulation, server, client, cdi, importing: 'ok', snapshotting: 'ok', failingStarts: 0 };
  return env;
}

/** Sends a request, and runs the simulation until the response arrives. */
async function sent<T>({ simulation }: Env, call: Promise<T>): Promise<T> {
  let done = false;
  const end = () => {
    done = true;
  };
  call.then(end, end);
  await simulation.run({ until: NEVER, done: () => done });
  return call;
}

/** Runs until no component has anything to do, for at most 5 minutes. */
function settled({ simulation }: Env): Promise<void> {
  return simulation.run({ until: simulation.schedule.now + 300_000 });
}

async function until({ simulation }: Env, done: () => boolean): Promise<void> {
  await simulation.run({ until: simulation.schedule.now + 300_000, done });
  expect(done()).toBe(true);
}

function importVolume(env: Env, name = 'disk'): Promise<KubeObject> {
  const source = { http: { url: 'http://images.example/ubuntu.img' } };
  const storage = { resources: { requests: { storage: '10Gi' } } };
  return sent(env, env.client.create(Volume, { metadata: { namespace, name }, spec: { source, storage } }));
}

function takeSnapshot(env: Env, name = 'disk-1'): Promise<KubeObject> {
  const spec = { source: { persistentVolumeClaimName: 'disk' } };
  return sent(env, env.client.create(Snapshot, { metadata: { namespace, name }, spec }));
}

function clone(env: Env, name = 'root'): Promise<KubeObject> {
  const spec = { source: { snapshot: { namespace, name: 'disk-1' } } };
  return sent(env, env.client.create(Volume, { metadata: { namespace, name }, spec }));
}

function createMachine(env: Env, runStrategy: string, volume: string): Promise<KubeObject> {
  const template = { spec: { volumes: [{ name: 'root', dataVolume: { name: volume } }] } };
  const metadata = { namespace, name: 'web' };
  return sent(env, env.client.create(Machine, { metadata, spec: { runStrategy, template } }));
}

/** Records the values that a field of an object has had. */
function history(
  { server }: Env,
  kind: { readonly plural: string },
  path: readonly string[],
): readonly unknown[] {
  const values: unknown[] = [];
  server.listen(({ resource, after }) => {
    if (resource.kind.plural !== kind.plural || after === undefined) return;
    const value = fieldAt(after.object, path);
    if (value !== undefined && value !== values.at(-1)) values.push(value);
  });
  return values;
}

const statusOf = ({ server }: Env) =>
  fieldAt(find(server, Machine, namespace, 'web'), ['status', 'printableStatus']);
const volumeIn = ({ server }: Env, name: string) => find(server, Volume, namespace, name);

describe('model of CDI', () => {
  test('an import creates an owned claim, reports progress and succeeds', async () => {
    const env = setup();
    const phases = history(env, Volume, ['status', 'phase']);
    const progress = history(env, Volume, ['status', 'progress']);
    const volume = await importVolume(env);
    await settled(env);
    expect(phases).toEqual(['Pending', 'ImportScheduled', 'ImportInProgress', 'Succeeded']);
    expect(progress).toEqual(['0.0%', '25.4%', '61.0%', '92.7%', '100.0%']);
    const claim = find(env.server, Claim, namespace, 'disk');
    expect(claim).toMatchObject({
      metadata: { ownerReferences: [{ uid: volume.metadata.uid, controller: true }] },
      status: { phase: 'Bound', capacity: { storage: '10Gi' } },
    });
  });

  test('the garbage collector removes the claim of a deleted DataVolume', async () => {
    const env = setup();
    await importVolume(env);
    await settled(env);
    await sent(env, env.client.delete(Volume, { namespace, name: 'disk' }));
    await settled(env);
    expect(find(env.server, Claim, namespace, 'disk')).toBeUndefined();
  });

  test.for([
    ['fail', 'Failed', 0],
    ['restart', 'Succeeded', 1],
    ['restarts', 'Succeeded', 6],
  ] as const)(
    'an import with the behaviour %s ends as %s after %i restarts',
    async ([behaviour, phase, restarts]) => {
      const env = setup();
      env.importing = behaviour;
      await importVolume(env);
      await settled(env);
      expect(fieldAt(volumeIn(env, 'disk'), ['status', 'phase'])).toBe(phase);
      expect(fieldAt(volumeIn(env, 'disk'), ['status', 'restartCount']) ?? 0).toBe(restarts);
    },
  );

  test('a missing source restarts the importer forever, with a message that contains 404', async () => {
    const env = setup();
    env.importing = 'missing';
    await importVolume(env);
    await until(env, () => Number(fieldAt(volumeIn(env, 'disk'), ['status', 'restartCount'])) > 8);
    expect(JSON.stringify(volumeIn(env, 'disk'))).toContain('got 404');
  });

  test('a hanging import continues when the configured behaviour changes, even if CDI restarts', async () => {
    const env = setup();
    env.importing = 'hang';
    await importVolume(env);
    await settled(env);
    expect(fieldAt(volumeIn(env, 'disk'), ['status', 'phase'])).toBe('Pending');
    env.importing = 'ok';
    env.cdi.restart(1_000);
    expect(env.cdi.isIdle).toBe(false);
    await settled(env);
    expect(fieldAt(volumeIn(env, 'disk'), ['status', 'phase'])).toBe('Succeeded');
    expect(env.cdi.isIdle).toBe(true);
  });

  test('a clone waits until its source snapshot is ready, and fails if the snapshot is deleted', async () => {
    const env = setup();
    await importVolume(env);
    env.snapshotting = 'never';
    await takeSnapshot(env);
    await clone(env);
    await settled(env);
    expect(fieldAt(volumeIn(env, 'root'), ['status', 'phase'])).toBe('SnapshotForSmartCloneInProgress');
    await sent(env, env.client.delete(Snapshot, { namespace, name: 'disk-1' }));
    await settled(env);
    expect(fieldAt(volumeIn(env, 'root'), ['status', 'phase'])).toBe('Failed');
  });

  test('a clone from a ready snapshot succeeds', async () => {
    const env = setup();
    await importVolume(env);
    await takeSnapshot(env);
    await clone(env);
    await settled(env);
    expect(find(env.server, Snapshot, namespace, 'disk-1')).toMatchObject({ status: { readyToUse: true } });
    expect(fieldAt(volumeIn(env, 'root'), ['status', 'phase'])).toBe('Succeeded');
  });
});

describe('model of the snapshot controller', () => {
  test('a snapshot with an error never becomes ready', async () => {
    const env = setup();
    env.snapshotting = 'error';
    await importVolume(env);
    await takeSnapshot(env);
    await settled(env);
    expect(find(env.server, Snapshot, namespace, 'disk-1')).toMatchObject({
      status: { readyToUse: false, error: { message: 'Failed to take the snapshot: the array is full' } },
    });
  });
});

describe('model of virt-controller', () => {
  test('a machine reports Stopped first, waits for its DataVolume, and runs', async () => {
    const env = setup();
    env.importing = 'slow';
    await importVolume(env);
    await until(env, () => find(env.server, Claim, namespace, 'disk') !== undefined);
    const statuses = history(env, Machine, ['status', 'printableStatus']);
    await createMachine(env, 'Always', 'disk');
    await settled(env);
    expect(statuses).toEqual(['Stopped', 'Provisioning', 'Starting', 'Running']);
    expect(find(env.server, Instance, namespace, 'web')).toMatchObject({
      status: { phase: 'Running', interfaces: [{ ipAddress: '10.0.0.1' }] },
    });
  });

  test('a machine that started before its claim existed stays stuck until its instance is deleted', async () => {
    const env = setup();
    await createMachine(env, 'Always', 'disk');
    await settled(env);
    await importVolume(env);
    await settled(env);
    expect(statusOf(env)).toBe('ErrorPvcNotFound');
    await sent(env, env.client.delete(Instance, { namespace, name: 'web' }));
    await settled(env);
    expect(statusOf(env)).toBe('Running');
  });

  test('a halted machine stays stopped, and a failed start is retried', async () => {
    const env = setup();
    await importVolume(env);
    await settled(env);
    await createMachine(env, 'Halted', 'disk');
    await settled(env);
    expect(statusOf(env)).toBe('Stopped');
    expect(find(env.server, Instance, namespace, 'web')).toBeUndefined();
    env.failingStarts = 2;
    const statuses = history(env, Machine, ['status', 'printableStatus']);
    const ref = { namespace, name: 'web' };
    await sent(env, env.client.mergePatch(Machine, ref, { spec: { runStrategy: 'Always' } }));
    await settled(env);
    expect(statuses.filter((status) => status === 'CrashLoopBackOff')).toHaveLength(2);
    expect(statuses.at(-1)).toBe('Running');
  });

  test('after a change of the template, the machine reports RestartRequired until its instance is deleted', async () => {
    const env = setup();
    await importVolume(env);
    await createMachine(env, 'Always', 'disk');
    await settled(env);
    const ref = { namespace, name: 'web' };
    const patch = { spec: { template: { spec: { domain: { cpu: { cores: 2 } } } } } };
    await sent(env, env.client.mergePatch(Machine, ref, patch));
    await settled(env);
    const conditions = () => JSON.stringify(find(env.server, Machine, namespace, 'web')?.status);
    expect(conditions()).toContain('RestartRequired');
    await sent(env, env.client.delete(Instance, ref));
    await settled(env);
    expect(conditions()).not.toContain('RestartRequired');
    expect(statusOf(env)).toBe('Running');
  });

  test('a deleted machine is removed after its instance', async () => {
    const env = setup();
    await importVolume(env);
    await settled(env);
    await createMachine(env, 'Always', 'disk');
    await settled(env);
    const removed: string[] = [];
    env.server.listen(({ resource, after }) => {
      if (after === undefined) removed.push(resource.kind.kind);
    });
    await sent(env, env.client.delete(Machine, { namespace, name: 'web' }));
    await settled(env);
    expect(removed).toEqual(['VirtualMachineInstance', 'VirtualMachine']);
  });
});
