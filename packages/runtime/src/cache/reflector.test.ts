import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { nodeWorld } from '../world/node/node-world.ts';
import type { World } from '../world/world.ts';
import { ObjectCache } from './cache.ts';

const FASTER = 200;

/** A world in which 70 s pass in a third of a second. */
const fastWorld: World = {
  ...nodeWorld,
  monotonic: () => nodeWorld.monotonic() * FASTER,
  after: (ms, callback) => nodeWorld.after(ms / FASTER, callback),
};

test('a watch that is silent for 70 s is taken for dead, told of, and taken up again', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const errors: unknown[] = [];
  const told = Promise.withResolvers<void>();
  const cache = new ObjectCache({
    world: fastWorld,
    client,
    kind: ConfigMap,
    namespaces: [namespace],
    onError: (error) => {
      errors.push(error);
      told.resolve();
    },
  });
  const stop = new AbortController();
  const running = cache.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  await cache.waitForSync();
  await told.promise;
  expect(String(errors[0])).toContain('nothing was heard for 70 s');
  const seen = new Promise<void>((resolve) => {
    cache.subscribe(({ key }) => key === `${namespace}/after` && resolve());
  });
  await client.create(ConfigMap, { metadata: { namespace, name: 'after' } });
  await seen;
});
