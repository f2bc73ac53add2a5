import { setImmediate } from 'node:timers/promises';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { virtualWorld } from '../../test/worlds.ts';
import { ObjectCache } from './cache.ts';

/**
 * Starts a cache, and lets 70 s pass after the cache has synced.
 * @param bookmarks whether the reflector receives a periodic bookmark in addition to the bookmark that ends the list
 */
async function start(kubeconfig: string, namespace: string, bookmarks: boolean) {
  const client = await connect(kubeconfig);
  const { world, clock } = virtualWorld();
  const errors: string[] = [];
  const reported = Promise.withResolvers<void>();
  const watches: (string | undefined)[] = [];
  const reopened = Promise.withResolvers<void>();
  const cache = new ObjectCache({
    world,
    client: {
      pages: (kind, options) => client.pages(kind, options),
      async *watch(kind, options) {
        watches.push(options?.resourceVersion);
        if (watches.length > 1) reopened.resolve();
        for await (const event of client.watch(kind, options)) {
          yield event;
          if (event.type === 'BOOKMARK' && bookmarks) yield { ...event, initialEventsEnd: false };
        }
      },
    },
    kind: ConfigMap,
    namespaces: [namespace],
    onError: (error) => {
      errors.push(String(error));
      reported.resolve();
    },
  });
  const stop = new AbortController();
  const running = cache.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
    await client[Symbol.asyncDispose]();
  });
  await cache.waitForSync();
  clock.advance(70_000);
  const sees = async (name: string) => {
    const seen = new Promise<void>((resolve) => {
      cache.subscribe(({ key }) => key === `${namespace}/${name}` && resolve());
    });
    await client.create(ConfigMap, { metadata: { namespace, name } });
    await seen;
  };
  return { clock, errors, reported: reported.promise, reopened: reopened.promise, watches, sees };
}

test('a watch without an event for 70 s is reported and resumed', async ({ cluster, namespace }) => {
  const { clock, errors, reported, watches, sees } = await start(cluster.kubeconfig, namespace, true);
  await reported;
  expect(errors).toEqual(['Error: no event for 70 s']);
  await expect
    .poll(() => {
      clock.advance(100); // repeated until the back-off has ended
      return watches.length;
    })
    .toBe(2);
  await sees('after-timeout');
});

test('an idle watch of a server without bookmarks is resumed without an error', async ({
  cluster,
  namespace,
}) => {
  const { errors, reopened, watches, sees } = await start(cluster.kubeconfig, namespace, false);
  await reopened;
  expect(watches[0]).toBeUndefined();
  expect(Number(watches[1])).toBeGreaterThan(0);
  await sees('after-resume');
  expect(errors).toEqual([]);
});

test('a server that ends each watch immediately is reported and retried with back-off', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const { world, clock } = virtualWorld();
  const errors: string[] = [];
  let watches = 0;
  const cache = new ObjectCache({
    world,
    client: {
      pages: (kind, options) => client.pages(kind, options),
      async *watch(kind, options) {
        watches += 1;
        if (watches > 1) return;
        for await (const event of client.watch(kind, options)) {
          yield event;
          if (event.type === 'BOOKMARK') return;
        }
      },
    },
    kind: ConfigMap,
    namespaces: [namespace],
    onError: (error) => void errors.push(String(error)),
  });
  const stop = new AbortController();
  const running = cache.run(stop.signal);
  await cache.waitForSync();
  await expect.poll(() => errors.length).toBe(1);
  expect(errors[0]).toContain('the server ended the watch immediately');
  clock.advance(399); // the first back-off takes 400 to 1200 ms
  await setImmediate(); // if the back-off ended too early, the reflector starts the next watch now
  expect(watches).toBe(2);
  clock.advance(801);
  await expect.poll(() => errors.length).toBe(2);
  expect(watches).toBe(3);
  stop.abort();
  await running;
});
