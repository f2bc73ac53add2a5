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
  const reservation = { key: 'old/x', generation: 1, node: 'n', gpus: 1, from: NOW };
  const unwatched = [{ uid: 'x', reservation, object: 'Unreadable' }] as const;
  const latest = { facts: known, allocation: allocate(input, NOW), unwatched };
  gpuMetrics(registry, { latest }, () => isLeading);
  const text = registry.text();
  expect(text).toContain('vmwright_gpu_reservations 1\n');
  expect(text).toContain('vmwright_gpus{state="free"} 3\n');
  expect(text).toContain('vmwright_gpu_unwatched_reservations{object="Exists"} 0\n');
  expect(text).toContain('vmwright_gpu_unwatched_reservations{object="Unreadable"} 1\n');
  isLeading = false;
  expect(registry.text()).toContain('vmwright_gpu_reservations NaN\n');
});
