import { expect, test } from 'vitest';
import { declaredMetrics } from './declared-metrics.ts';

test('every metric has a unique name and a help text, and counters end in _total', () => {
  const all = declaredMetrics().flatMap(({ metrics }) => metrics);
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  expect(all.filter(({ help }) => help === '')).toEqual([]);
  expect(all.filter(({ name, type }) => type === 'counter' && !name.endsWith('_total'))).toEqual([]);
});

test('a section of the metrics documentation lists name, type, help and labels of its metrics', () => {
  const vm = declaredMetrics().find(({ title }) => title === 'VM');
  expect(vm?.metrics).toContainEqual({
    name: 'vmwright_cloud_requests_total',
    type: 'counter',
    labels: ['method', 'route', 'code'],
    help: 'Requests to the private cloud; code is <error> if there was no response.',
  });
});
