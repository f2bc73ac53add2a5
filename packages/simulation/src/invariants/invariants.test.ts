import { Client, defineKind, Lease, Secret, schema } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import { API_SERVER, accessTo, startApiServer } from '../apiserver/simulated.ts';
import { ReplicaWorld } from '../scenario/replica-world.ts';
import { Traffic } from '../scenario/traffic.ts';
import { seeded } from '../world/simulation.ts';
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
  endsLikeAFreshOne,
  finalizerStaysWhileWanted,
  identityNeverChanges,
  noSecretOutsideSecrets,
  noStuckFinalizer,
  observedGenerationNeverGoesBack,
} from './objects.ts';
import type { OutsideChange, OutsideResource } from './outside.ts';
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

/** A world without trouble, in which a test does what must not be done. */
class Stage {
  readonly simulation = seeded(1);
  readonly server = startApiServer(this.simulation);
  readonly traffic = new Traffic(this.simulation);
  readonly resources = new Map<string, OutsideResource>();
  readonly #listeners: ((change: OutsideChange) => void)[] = [];
  readonly truth: Truth = {
    simulation: this.simulation,
    server: this.server,
    kind: Thing,
    traffic: this.traffic,
    outside: {
      all: () => this.resources.values(),
      listen: (listener) => void this.#listeners.push(listener),
    },
  };

  constructor() {
    this.server.serve(Thing);
    this.traffic.serve(API_SERVER, this.server);
  }

  /** @param identity as which life of a replica */
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

  put(after: OutsideResource): void {
    const before = this.resources.get(after.id);
    this.resources.set(after.id, after);
    for (const tell of this.#listeners) tell({ before, after });
  }

  remove(id: string): void {
    const before = this.resources.get(id);
    this.resources.delete(id);
    for (const tell of this.#listeners) tell({ before, after: undefined });
  }

  /** What the invariant has against what is done from now on. */
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
const owned = (id: string, owner: string) => ({ id, owner, leaving: false });

describe('invariants about what is outside', () => {
  test('a second machine of the same object is seen, one of another is fine', () => {
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

  test('a foreign machine may come, and nobody may change or delete it', () => {
    const stage = new Stage();
    const violations = stage.watched(foreignMachinesUntouched);
    stage.put({ id: 'm-1', owner: undefined, leaving: false });
    expect(violations).toEqual([]);
    stage.put({ id: 'm-1', owner: undefined, leaving: true });
    expect(violations).toEqual(['m-1 is deleted']);
  });

  test('a machine may go once its object is to go, and not before', async () => {
    const stage = new Stage();
    const violations = stage.watched(noWantedMachineDeleted);
    const client = stage.client('alpha.1');
    const draft = { metadata: { ...metadata, finalizers: ['test.dev/held'] }, spec: { size: 1 } };
    const thing = await stage.settled(client.create(Thing, draft));
    const uid = thing.metadata.uid ?? '';
    for (const id of ['m-1', 'm-2']) stage.put(owned(id, uid));
    stage.put({ ...owned('m-1', uid), leaving: true });
    expect(violations).toHaveLength(1);
    await stage.settled(client.delete(Thing, metadata));
    stage.put({ ...owned('m-2', uid), leaving: true });
    expect(violations).toHaveLength(1);
    expect(stage.against(noStuckFinalizer)).toEqual([`a (${uid}) is held by test.dev/held`]);
    expect(stage.against(nothingLeaked)).toEqual([]);
    stage.put(owned('m-3', 'u-9'));
    expect(stage.against(nothingLeaked)).toEqual(['m-3 is there, and the object u-9 is not']);
  });
});

describe('invariants about objects', () => {
  test('an identity that changes and a generation that goes back are seen', async () => {
    const stage = new Stage();
    const identity = stage.watched(identityNeverChanges(['status', 'id']));
    const generation = stage.watched(observedGenerationNeverGoesBack);
    const client = stage.client('alpha.1');
    await stage.settled(client.create(Thing, { metadata, spec: { size: 1 } }));
    const tell = (status: object) =>
      stage.settled(client.mergePatch(Thing, metadata, { status }, { subresource: 'status' }));
    await tell({ id: 'm-1', observedGeneration: 2 });
    await tell({ observedGeneration: 3 });
    expect([identity, generation]).toEqual([[], []]);
    await tell({ id: 'm-2' });
    await tell({ observedGeneration: 2 });
    expect([identity.length, generation.length]).toEqual([1, 1]);
  });

  test('a finalizer that is taken off an object which nobody deletes is seen', async () => {
    const stage = new Stage();
    const violations = stage.watched(finalizerStaysWhileWanted('test.dev/held'));
    const client = stage.client('alpha.1');
    for (const name of ['a', 'b']) {
      const held = { namespace: 'default', name, finalizers: ['test.dev/held'] };
      await stage.settled(client.create(Thing, { metadata: held, spec: { size: 1 } }));
    }
    const letGo = (name: string) =>
      stage.settled(client.mergePatch(Thing, { ...metadata, name }, { metadata: { finalizers: null } }));
    await stage.settled(client.delete(Thing, metadata));
    await letGo('a');
    expect(violations).toEqual([]);
    await letGo('b');
    expect(violations).toEqual([expect.stringContaining('b (')]);
  });

  test('a secret is seen anywhere but in a Secret', async () => {
    const stage = new Stage();
    const violations = stage.watched(noSecretOutsideSecrets('hush'));
    const client = stage.client('alpha.1');
    await stage.settled(client.create(Secret, { metadata, data: { token: 'hush' } }));
    expect(violations).toEqual([]);
    const annotations = { note: 'the token is hush' };
    await stage.settled(client.create(Thing, { metadata: { ...metadata, annotations }, spec: { size: 1 } }));
    expect(violations).toEqual(['it is in Thing default/a']);
  });

  test('objects of the same spec that differ at rest are seen, and so is one that is not as it should be', async () => {
    const stage = new Stage();
    const client = stage.client('alpha.1');
    for (const name of ['a', 'b'])
      await stage.settled(client.create(Thing, { metadata: { ...metadata, name }, spec: { size: 1 } }));
    const likeFresh = endsLikeAFreshOne(({ status }) => status);
    expect(stage.against(likeFresh)).toEqual([]);
    await stage.settled(
      client.mergePatch(Thing, metadata, { status: { id: 'm-1' } }, { subresource: 'status' }),
    );
    expect(stage.against(likeFresh)).toHaveLength(1);
    const told = converged(({ status }) => (status === undefined ? 'no status' : undefined));
    expect(stage.against(told)).toEqual([expect.stringContaining('b')]);
  });

  test('a queue that has work left is seen', () => {
    const stage = new Stage();
    expect(stage.against(emptyQueue(() => undefined))).toEqual([]);
    expect(stage.against(emptyQueue(() => ({ depth: 1, working: [5] })))).toEqual([
      '1 wait and 1 are worked on',
    ]);
  });
});

test('a write of a replica that does not hold the lease is seen at its sending', async () => {
  const stage = new Stage();
  const violations = stage.watched(onlyTheLeaderWrites(API_SERVER, 'lead'));
  const alpha = stage.client('alpha.1');
  const beta = stage.client('beta.1');
  const lease = { metadata: { namespace: 'default', name: 'lead' }, spec: { holderIdentity: 'alpha.1_x' } };
  await stage.settled(alpha.create(Lease, lease));
  await stage.settled(alpha.apply(Thing, { metadata, spec: { size: 1 } }));
  expect(violations).toEqual([]);
  const refused = beta.mergePatch(Thing, metadata, { metadata: { resourceVersion: '1' }, spec: { size: 2 } });
  await expect(stage.settled(refused)).rejects.toThrow(); // though it is refused: that it was sent is wrong
  expect(violations).toEqual([expect.stringContaining('beta.1 sends PATCH')]);
});
