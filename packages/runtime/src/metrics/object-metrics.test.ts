import { sampleOf } from '@vmwright/core/testing';
import { test } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { startManager } from '../testing/index.ts';
import { ObjectMetrics } from './object-metrics.ts';

test('objects are counted by kind and phase, from the cache, at each scrape', async ({
  cluster,
  namespace,
}) => {
  await using admin = await connect(cluster.kubeconfig);
  const create = (name: string, phase?: string) =>
    admin.create(ConfigMap, { metadata: { namespace, name }, data: phase === undefined ? {} : { phase } });
  await create('a', 'Good');
  await create('b', 'Good');
  const counted: string[] = [];
  await using running = await startManager(cluster, { namespaces: [namespace] }, (manager) => {
    const metrics = new ObjectMetrics(manager.registry, 'things');
    metrics.count(manager.caches.get(ConfigMap), {
      phases: ['Good', 'Bad'],
      phaseOf: ({ data }) => data?.phase,
    });
    counted.push(manager.registry.text());
  });
  const at = (text: string) =>
    ['Good', 'Bad', 'None'].map((phase) => sampleOf(text, 'things', { kind: 'ConfigMap', phase }));
  expect(at(counted[0] ?? '')).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  const now = () => at(running.manager.registry.text());
  const [good, bad, none = 0] = now();
  expect([good, bad]).toEqual([2, 0]);
  await create('c', 'Bad');
  await create('d', 'something-else');
  await create('e');
  await admin.mergePatch(ConfigMap, { namespace, name: 'a' }, { data: { phase: 'Bad' } });
  await admin.delete(ConfigMap, { namespace, name: 'b' });
  await expect.poll(now).toEqual([0, 2, none + 2]);
});
