import { expect, test } from 'vitest';
import { CloudMetrics } from './cloud-metrics.ts';
import { Registry } from './registry.ts';

test('metrics are written in the Prometheus text format', () => {
  const registry = new Registry();
  const counter = registry.counter('a_total', 'Some');
  counter.add({});
  counter.add({ text: 'a "b"\\\n' }, 2);
  const histogram = registry.histogram('b_seconds', 'Time', [0.1, 1]);
  for (const value of [0.1, 0.5, 7]) histogram.observe({ route: '/x' }, value);
  expect(registry.text()).toBe(`# HELP a_total Some
# TYPE a_total counter
a_total 1
a_total{text="a \\"b\\"\\\\\\n"} 2
# HELP b_seconds Time
# TYPE b_seconds histogram
b_seconds_bucket{route="/x",le="0.1"} 1
b_seconds_bucket{route="/x",le="1"} 2
b_seconds_bucket{route="/x",le="+Inf"} 3
b_seconds_sum{route="/x"} 7.6
b_seconds_count{route="/x"} 3
`);
});

test('the servers gauge has a series for every state, including those without servers', () => {
  const text = new CloudMetrics().text(new Map([['running', 2]]));
  expect(text.match(/^vmwright_cloud_servers.*$/gm)).toEqual([
    'vmwright_cloud_servers{state="building"} 0',
    'vmwright_cloud_servers{state="running"} 2',
    'vmwright_cloud_servers{state="failed"} 0',
    'vmwright_cloud_servers{state="deleting"} 0',
  ]);
});
