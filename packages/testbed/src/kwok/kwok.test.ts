import { expect } from 'vitest';
import { condition, field } from '../kubernetes/api.ts';
import { test } from '../vitest/index.ts';
import { createNode } from './kwok.ts';

test('a kwok node becomes Ready and runs pods that the scheduler assigns to it', async ({
  kubevirt: cluster,
  namespace,
}) => {
  const name = `kwok-test-${namespace}`;
  await createNode(cluster, name, { labels: { 'testbed.vmwright.dev/only': name } });
  expect(condition(await cluster.api.get(`/api/v1/nodes/${name}`), 'Ready')).toBe('True');

  await cluster.api.create(`/api/v1/namespaces/${namespace}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'sleeper' },
    spec: {
      nodeSelector: { 'testbed.vmwright.dev/only': name },
      containers: [{ name: 'main', image: 'none' }],
    },
  });
  const pod = `/api/v1/namespaces/${namespace}/pods/sleeper`;
  const running = await cluster.waitFor(pod, (object) => field(object, 'status', 'phase') === 'Running');
  expect(field(running, 'spec', 'nodeName')).toBe(name);
  await cluster.api.delete(pod);
  await cluster.waitForGone(pod);
  await cluster.api.delete(`/api/v1/nodes/${name}`);
});
