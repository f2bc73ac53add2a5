import { Client, defineKind, Lease, Secret, schema } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import { API_SERVER, accessTo, startApiServer } from '../apiserver/simulated.ts';
import { ReplicaWorld } from '../scenario/replica-world.ts';
import { Traffic } from '../scenario/traffic.ts';
import { seeded } from '../world/simulation.ts';
import type { ExternalResource, ExternalResourceChange } from './external-resources.ts';
import type { Invariant, Truth } from './invariant.ts';
import { onlyTheLeaderWrites } from './leaders.ts';
import {
  atMostOneMachine,
  foreignMachinesUntouched,
  nothingLeaked,
  noWantedMachineDeleted,
} from './machines.ts';
import {
  converged,
  finalizerStaysWhileWanted,
  identityNeverChanges,
  noSecretOutsideSecrets,
  noStuckFinalizer,
  observedGenerationNeverGoesBack,
  sameEndState,
} from './objects.ts';
import { emptyQueue } from './queues.ts';

const Thing = defineKind({
  group: 'invariants.vmwright.dev',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  spec: schema.object({ size: schema.integer() }),
  status: schema.object({
    id: schema.optional(schema.string()),
    observedGeneration: schema.optional(schema.integer()),
  }),
});

/** A simulation without faults in which a test violates an invariant on purpose. */
class Stage {
  readonly simulation = seeded(1);
  readonly server = startApiServer(this.simulation);
  readonly traffic = new Traffic(this.simulation);
  readonly resources = new Map<string, ExternalResource>();
  readonly #listeners: ((change: ExternalResourceChange) => void)[] = [];
  readonly truth: Truth = {
    simulation: this.simulation,
    server: this.server,
    kind: Thing,
    traffic: this.traffic,
    external: {
      all: () => this.resources.values(),
      listen: (listener) => void this.#listeners.push(listener),
    },
  };

  constructor() {
    this.server.serve(Thing);
    this.traffic.serve(API_SERVER, this.server);
  }

  /** @param identity replica and incarnation, such as `alpha.2` */
  client(identity: string): Client {
    const world = this.simulation.start(identity);
    const { signal } = new AbortController();
    return new Client({
      world: new ReplicaWorld(identity, world, signal, this.traffic),
      access: accessTo(),
      fieldManager: 'test',
    });
  }

  async settled<T>(promise: Promise<T>): Promise<T> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    promise.then(over, over);
    await this.simulation.run({ until: this.simulation.schedule.now + 120_000, done: () => isOver });
    return promise;
  }

  put(after: ExternalResource): void {
    const before = this.resources.get(after.id);
    this.resources.set(after.id, after);
    for (const notify of this.#listeners) notify({ before, after });
  }

  remove(id: string): void {
    const before = this.resources.get(id);
    this.resources.delete(id);
    for (const notify of this.#listeners) notify({ before, after: undefined });
  }

  /** Returns the violations that the invariant reports from now on. */
  watched({ watch }: Invariant): readonly string[] {
    const violations: string[] = [];
    watch?.(this.truth, (detail) => violations.push(detail));
    return violations;
  }

  against({ healed }: Invariant): readonly string[] {
    return [...(healed?.(this.truth) ?? [])];
  }
}

const metadata = { namespace: 'default', name: 'a' };
const owned = (id: string, owner: string) => ({ id, owner, deleting: false });

describe('invariants of external resources', () => {
  test('a second machine of the same object is a violation', () => {
    const stage = new Stage();
    const violations = stage.watched(atMostOneMachine);
    stage.put(owned('m-1', 'u-1'));
    stage.put(owned('m-2', 'u-2'));
    stage.remove('m-1');
    stage.put(owned('m-3', 'u-1'));
    expect(violations).toEqual([]);
    stage.put(owned('m-4', 'u-1'));
    expect(violations).toEqual(['u-1 has m-3 and m-4']);
  });

  test('changing or deleting a foreign machine is a violation', () => {
    const stage = new Stage();
    const violations = stage.watched(foreignMachinesUntouched);
    stage.put({ id: 'm-1', owner: undefined, deleting: false });
    expect(violations).toEqual([]);
    stage.put({ id: 'm-1', owner: undefined, deleting: true });
    expect(violations).toEqual(['m-1 is deleted']);
    stage.put({ id: 'm-2', owner: undefined, deleting: false });
    stage.put({ id: 'm-2', owner: 'u-1', deleting: false });
    expect(violations).toEqual(['m-1 is deleted', 'm-2 is changed']);
  });

  test('deleting a machine is a violation unless its object is being deleted', async () => {
    const stage = new Stage();
    const violations = stage.watched(noWantedMachineDeleted);
    const client = stage.client('alpha.1');
    const draft = { metadata: { ...metadata, finalizers: ['test.dev/held'] }, spec: { size: 1 } };
    const thing = await stage.settled(client.create(Thing, draft));
    const uid = thing.metadata.uid ?? '';
    for (const id of ['m-1', 'm-2']) stage.put(owned(id, uid));
    stage.put({ ...owned('m-1', uid), deleting: true });
    expect(violations).toHaveLength(1);
    await stage.settled(client.delete(Thing, metadata));
    stage.put({ ...owned('m-2', uid), deleting: true });
    expect(violations).toHaveLength(1);
    expect(stage.against(noStuckFinalizer)).toEqual([`a (${uid}) is held by test.dev/held`]);
    expect(stage.against(nothingLeaked)).toEqual([]);
    stage.put(owned('m-3', 'u-9'));
    expect(stage.against(nothingLeaked)).toEqual(['m-3 exists without its object u-9']);
  });
});

describe('invariants of objects', () => {
  test('a changed identity and a decreasing observedGeneration are violations', async () => {
    const stage = new Stage();
    const identity = stage.watched(identityNeverChanges(['status', 'id']));
    const generation = stage.watched(observedGenerationNeverGoesBack);
    const client = stage.client('alpha.1');
    await stage.settled(client.create(Thing, { metadata, spec: { size: 1 } }));
    const writeStatus = (status: object) =>
      stage.settled(client.mergePatch(Thing, metadata, { status }, { subresource: 'status' }));
    await writeStatus({ id: 'm-1', observedGeneration: 2 });
    await writeStatus({ observedGeneration: 3 });
    expect([identity, generation]).toEqual([[], []]);
    await writeStatus({ id: 'm-2' });
    await writeStatus({ observedGeneration: 2 });
    expect([identity.length, generation.length]).toEqual([1, 1]);
  });

  test('removing the finalizer of an object that is not being deleted is a violation', async () => {
    const stage = new Stage();
    const violations = stage.watched(finalizerStaysWhileWanted('test.dev/held'));
    const client = stage.client('alpha.1');
    for (const name of ['a', 'b']) {
      const held = { namespace: 'default', name, finalizers: ['test.dev/held'] };
      await stage.settled(client.create(Thing, { metadata: held, spec: { size: 1 } }));
    }
    const removeFinalizer = (name: string) =>
      stage.settled(client.mergePatch(Thing, { ...metadata, name }, { metadata: { finalizers: null } }));
    await stage.settled(client.delete(Thing, metadata));
    await removeFinalizer('a');
    expect(violations).toEqual([]);
    await removeFinalizer('b');
    expect(violations).toEqual([expect.stringContaining('b (')]);
  });

  test('a secret value in an object that is not a Secret is a violation', async () => {
    const stage = new Stage();
    const violations = stage.watched(noSecretOutsideSecrets('hush'));
    const client = stage.client('alpha.1');
    await stage.settled(client.create(Secret, { metadata, data: { token: 'hush' } }));
    expect(violations).toEqual([]);
    const annotations = { note: 'the token is hush' };
    await stage.settled(client.create(Thing, { metadata: { ...metadata, annotations }, spec: { size: 1 } }));
    expect(violations).toEqual(['Thing default/a contains the secret']);
  });

  test('sameEndState reports different statuses for the same spec, and converged reports a missing status', async () => {
    const stage = new Stage();
    const client = stage.client('alpha.1');
    for (const name of ['a', 'b'])
      await stage.settled(client.create(Thing, { metadata: { ...metadata, name }, spec: { size: 1 } }));
    const likeFresh = sameEndState(({ status }) => status);
    expect(stage.against(likeFresh)).toEqual([]);
    await stage.settled(
      client.mergePatch(Thing, metadata, { status: { id: 'm-1' } }, { subresource: 'status' }),
    );
    expect(stage.against(likeFresh)).toHaveLength(1);
    const hasStatus = converged(({ status }) => (status === undefined ? 'no status' : undefined));
    expect(stage.against(hasStatus)).toEqual([expect.stringContaining('b')]);
  });

  test('a queue that still has work at the end of a run is a violation', () => {
    const stage = new Stage();
    expect(stage.against(emptyQueue(() => undefined))).toEqual([]);
    expect(stage.against(emptyQueue(() => ({ depth: 1, working: [5] })))).toEqual([
      '1 keys are queued and 1 are being processed',
    ]);
  });
});

test('a write that is sent by a replica without the lease is a violation', async () => {
  const stage = new Stage();
  const violations = stage.watched(onlyTheLeaderWrites(API_SERVER, 'lead'));
  const alpha = stage.client('alpha.1');
  const beta = stage.client('beta.1');
  const lease = { metadata: { namespace: 'default', name: 'lead' }, spec: { holderIdentity: 'alpha.1_x' } };
  await stage.settled(alpha.create(Lease, lease));
  await stage.settled(alpha.apply(Thing, { metadata, spec: { size: 1 } }));
  expect(violations).toEqual([]);
  const rejected = beta.mergePatch(Thing, metadata, {
    metadata: { resourceVersion: '1' },
    spec: { size: 2 },
  });
  await expect(stage.settled(rejected)).rejects.toThrow(); // a rejected write is a violation, too, because it was sent
  expect(violations).toEqual([expect.stringContaining('beta.1 sends PATCH')]);
});
