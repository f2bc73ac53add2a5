import { Registry } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { allocate } from './allocate.ts';
import { HOUR_MS } from './maintenance.ts';
import { gpuMetrics } from './metrics.ts';
import { facts, gpuNode, NOW, pool, request } from './testing.ts';

test('only the leader reports GPUs and reservations', () => {
  const known = facts([gpuNode('n')], [pool('n', 4)]);
  const input = {
    requests: [request('a')],
    facts: known,
    reservations: new Map(),
    horizonMs: 8_760 * HOUR_MS,
  };
  const registry = new Registry();
  let isLeading = true;
  gpuMetrics(registry, { latest: { facts: known, allocation: allocate(input, NOW) } }, () => isLeading);
  const text = registry.text();
  expect(text).toContain('vmwright_gpu_reservations 1\n');
  expect(text).toContain('vmwright_gpus{state="free"} 3\n');
  isLeading = false;
  expect(registry.text()).toContain('vmwright_gpu_reservations NaN\n');
});
