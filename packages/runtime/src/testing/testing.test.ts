import { test } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap, Deployment } from '../../test/kinds.ts';
import { startManager, waitFor, waitForCondition, waitForGone } from './index.ts';

test('a controller runs against the testbed in a few lines', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  await using running = await startManager(cluster, { namespaces: [namespace] }, (manager) => {
    manager.control({
      for: ConfigMap,
      reconcile: async ({ metadata, data }, { client: own, log }) => {
        if (data?.ask === undefined || data.answer !== undefined) return;
        log.info({}, 'answering');
        await own.mergePatch(ConfigMap, metadata, { data: { answer: `${data.ask}!` } });
      },
    });
  });
  expect(running.manager.ready).toBe(true);
  const ref = { namespace, name: 'question' };
  await client.create(ConfigMap, { metadata: ref, data: { ask: 'well' } });
  const answered = await waitFor(client, ConfigMap, ref, (object) => object?.data?.answer !== undefined);
  expect(answered?.data).toEqual({ ask: 'well', answer: 'well!' });
  expect(running.log.map(({ msg }) => msg)).toContain('answering');
});

test('a condition, and the absence of an object, can be waited for', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  const ref = { namespace, name: 'web' };
  const labels = { app: 'web' };
  await client.create(Deployment, {
    metadata: ref,
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'web' }] } },
    },
  });
  const there = await waitForCondition(client, Deployment, ref, 'Available');
  expect(there.metadata.name).toBe('web');
  const gone = waitForGone(client, Deployment, ref);
  await client.delete(Deployment, ref);
  await gone;
});

test('what does not come is told with the last state', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  const ref = { namespace, name: 'quiet' };
  const wanted = () => false;
  await expect(waitFor(client, ConfigMap, ref, wanted, { timeoutMs: 200 })).rejects.toThrow(
    `configmaps ${namespace}/quiet is not as wanted after 0.2 s: there is none`,
  );
  await client.create(ConfigMap, { metadata: ref, data: { state: 'odd' } });
  // With more and more time until the object was seen at all: how long that takes depends on the machine.
  const failure = async (timeoutMs: number): Promise<unknown> => {
    let isSeen = false;
    const see = () => {
      isSeen = true;
      return false;
    };
    const failed = await waitFor(client, ConfigMap, ref, see, { timeoutMs }).catch((error: unknown) => error);
    return isSeen ? failed : failure(2 * timeoutMs);
  };
  expect(String(await failure(200))).toContain('"state":"odd"');
});

test('a manager that cannot start says why', async ({ cluster, namespace }) => {
  const nobody = { kubeconfig: await cluster.kubeconfigFor({ namespace, name: 'default' }) };
  const starting = startManager(nobody, { syncTimeoutMs: 500 }, (manager) => {
    manager.control({ for: ConfigMap, reconcile: async () => undefined });
  });
  await expect(starting).rejects.toThrow('no complete list of configmaps');
});
