import { test } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap, Deployment } from '../../test/kinds.ts';
import { startManager, waitFor, waitForCondition, waitForGone } from './index.ts';

test('startManager runs a controller against the testbed', async ({ cluster, namespace }) => {
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

test('waitForCondition and waitForGone wait for a condition and for deletion', async ({
  cluster,
  namespace,
}) => {
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
  const available = await waitForCondition(client, Deployment, ref, 'Available');
  expect(available.metadata.name).toBe('web');
  const gone = waitForGone(client, Deployment, ref);
  await client.delete(Deployment, ref);
  await gone;
});

test('waitFor rejects after its timeout with the last state of the object', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const ref = { namespace, name: 'quiet' };
  const never = () => false;
  await expect(waitFor(client, ConfigMap, ref, never, { timeoutMs: 200 })).rejects.toThrow(
    `configmaps ${namespace}/quiet did not reach the expected state within 0.2 s: it does not exist`,
  );
  await client.create(ConfigMap, { metadata: ref, data: { state: 'odd' } });
  // Double the timeout until the object was observed, because the time to observe it depends on the machine.
  const failure = async (timeoutMs: number): Promise<unknown> => {
    let observed = false;
    const observe = () => {
      observed = true;
      return false;
    };
    const error: unknown = await waitFor(client, ConfigMap, ref, observe, { timeoutMs }).catch(
      (caught: unknown) => caught,
    );
    return observed ? error : failure(2 * timeoutMs);
  };
  expect(String(await failure(200))).toContain('"state":"odd"');
});

test('startManager rejects with the reason if the manager cannot start', async ({ cluster, namespace }) => {
  const unprivileged = { kubeconfig: await cluster.kubeconfigFor({ namespace, name: 'default' }) };
  const starting = startManager(unprivileged, { syncTimeoutMs: 500 }, (manager) => {
    manager.control({ for: ConfigMap, reconcile: async () => undefined });
  });
  await expect(starting).rejects.toThrow('no complete list of configmaps');
});
