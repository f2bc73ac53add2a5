import {
  Client,
  type ClientOptions,
  defineKind,
  foreignKind,
  GoneError,
  type KubeObject,
  schema,
} from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import { Choices } from '../world/choices.ts';
import { Simulation } from '../world/simulation.ts';
import { accessTo, startApiServer } from './simulated.ts';

/*
 * Covers behaviour that the differential test cannot: behaviour over time (bookmarks, watch timeouts, compaction,
 * garbage collection) and the errors for requests that the model does not support.
 */

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}
const ConfigMap = foreignKind<ConfigMap>({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  scope: 'Namespaced',
});

const metadata = (name: string) => ({ namespace: 'default', name });

function start(options: Partial<ClientOptions> = {}) {
  const simulation = new Simulation({ choices: Choices.replayed([]) });
  const server = startApiServer(simulation);
  const world = simulation.start('client');
  const client = new Client({
    world,
    access: accessTo(),
    fieldManager: 'test',
    timeoutMs: 5_000,
    ...options,
  });
  /** Advances virtual time until the promise has settled. */
  const outcome = async <T>(promise: Promise<T>): Promise<PromiseSettledResult<T>> => {
    let settled: PromiseSettledResult<T> | undefined;
    promise.then(
      (value) => {
        settled = { status: 'fulfilled', value };
      },
      (reason) => {
        settled = { status: 'rejected', reason };
      },
    );
    await simulation.run({ until: simulation.schedule.now + 600_000, done: () => settled !== undefined });
    if (settled === undefined) throw new Error('the promise did not settle within ten minutes');
    return settled;
  };
  const done = async <T>(promise: Promise<T>): Promise<T> => {
    const settled = await outcome(promise);
    if (settled.status === 'rejected') throw settled.reason;
    return settled.value;
  };
  return { simulation, server, world, client, outcome, done };
}

describe('watch', () => {
  test('a watch sends a bookmark every minute while idle and ends after timeoutSeconds', async () => {
    const { client, world, done } = start();
    const seen: string[] = [];
    const watch = async () => {
      for await (const event of client.watch(ConfigMap, { sendInitialEvents: true, timeoutSeconds: 150 }))
        seen.push(`${event.type} at ${Math.round(world.monotonic() / 1_000)} s`);
    };
    await done(watch());
    expect(seen).toEqual(['BOOKMARK at 0 s', 'BOOKMARK at 60 s', 'BOOKMARK at 120 s']);
    expect(Math.round(world.monotonic() / 1_000)).toBe(150);
  });

  test('a watch, or the next page of a list, gets 410 if its resourceVersion is older than the last compaction', async () => {
    const { client, server, done, outcome } = start();
    const created = await done(client.create(ConfigMap, { metadata: metadata('a') }));
    await done(client.create(ConfigMap, { metadata: metadata('b') }));
    const page = await done(client.list(ConfigMap, { limit: 1 }));
    await done(client.create(ConfigMap, { metadata: metadata('c') }));
    server.compact();
    const { resourceVersion = '' } = created.metadata;
    const watched = await outcome(Array.fromAsync(client.watch(ConfigMap, { resourceVersion })));
    const listed = await outcome(client.list(ConfigMap, { continue: page.continue ?? '' }));
    for (const settled of [watched, listed])
      expect(settled).toMatchObject({ status: 'rejected', reason: expect.any(GoneError) });
  });

  test('a watch from the version of a list gets all later changes', async () => {
    const { client, done } = start();
    await done(client.create(ConfigMap, { metadata: metadata('a') }));
    const { resourceVersion } = await done(client.list(ConfigMap));
    await done(client.create(ConfigMap, { metadata: metadata('b') }));
    await done(client.delete(ConfigMap, metadata('a')));
    const seen: string[] = [];
    const watch = async () => {
      for await (const event of client.watch(ConfigMap, { resourceVersion, timeoutSeconds: 10 }))
        if (event.type !== 'BOOKMARK') seen.push(`${event.type} ${event.object.metadata.name}`);
    };
    await done(watch());
    expect(seen).toEqual(['ADDED b', 'DELETED a']);
  });
});

test('the garbage collector deletes a dependent some time after its owner', async () => {
  const { client, server, simulation, done } = start();
  const owner = await done(client.create(ConfigMap, { metadata: metadata('owner') }));
  const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid ?? '' };
  await done(client.create(ConfigMap, { metadata: { ...metadata('owned'), ownerReferences: [reference] } }));
  const deletions: string[] = [];
  server.listen(({ key, after }) => {
    if (after === undefined) deletions.push(`${key} at ${simulation.schedule.now}`);
  });
  const requestedAt = simulation.schedule.now;
  await done(client.delete(ConfigMap, metadata('owner')));
  await simulation.run({ until: requestedAt + 60_000 });
  // The request takes one millisecond, and the garbage collector acts one millisecond later.
  expect(deletions).toEqual([`default/owner at ${requestedAt + 1}`, `default/owned at ${requestedAt + 2}`]);
});

describe('unsupported requests', () => {
  const Unknown = foreignKind<KubeObject>({ ...ConfigMap, plural: 'pods', kind: 'Pod' });

  test('an unsupported request ends the run with an error that names the request', async () => {
    const { client, done } = start();
    await expect(done(client.list(Unknown))).rejects.toThrow(
      'GET /api/v1/pods: the API server model does not support pods of /v1',
    );
    const next = start();
    const wrong = next.client.list(ConfigMap, { fieldSelector: 'data.x=1' });
    await expect(next.done(wrong)).rejects.toThrow('does not support the field selector data.x=1');
  });

  test('serve() throws for a kind with CEL rules if no function that checks these rules is given', () => {
    const { server } = start();
    const Ruled = defineKind({
      group: 'simulation-test.vmwright.dev',
      version: 'v1',
      kind: 'Ruled',
      plural: 'ruleds',
      spec: schema.object({ level: schema.integer({ rules: [{ rule: 'self > 0' }] }) }),
    });
    expect(() => server.serve(Ruled)).toThrow('Ruled has CEL rules');
    server.serve(Ruled, () => []);
  });
});
