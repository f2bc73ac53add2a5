import { describe, expect, test } from 'vitest';
import { parseExposition, sampleOf } from '../testing/exposition.ts';
import { MetricError } from './family.ts';
import { exponentialBuckets, Registry } from './registry.ts';

describe('exposition', () => {
  test('the exposition follows the Prometheus text format exactly', () => {
    const registry = new Registry();
    const counter = registry.counter({ name: 'sent_total', help: 'Messages\nsent \\o/', labels: ['to'] });
    counter.with({ to: 'a "b"\\\n' }).inc(2);
    registry.gauge({ name: 'level', help: 'Water level' }).with({}).set(-1.5);
    const histogram = registry.histogram({
      name: 'took',
      help: 'Duration',
      labels: ['by'],
      buckets: [0.5, 1],
    });
    for (const value of [0.5, 0.6, 7]) histogram.with({ by: 'me' }).observe(value);
    expect(registry.text()).toBe(`# HELP sent_total Messages\\nsent \\\\o/
# TYPE sent_total counter
sent_total{to="a \\"b\\"\\\\\\n"} 2
# HELP level Water level
# TYPE level gauge
level -1.5
# HELP took Duration
# TYPE took histogram
took_bucket{by="me",le="0.5"} 1
took_bucket{by="me",le="1"} 2
took_bucket{by="me",le="+Inf"} 3
took_sum{by="me"} 8.1
took_count{by="me"} 3
`);
    const parsed = parseExposition(registry.text());
    expect(parsed.get('sent_total')?.samples[0]?.labels).toEqual({ to: 'a "b"\\\n' });
    expect(parsed.get('sent_total')?.help).toBe('Messages\nsent \\o/');
  });

  test('a series without labels is exposed immediately, a series with labels after its first use', () => {
    const registry = new Registry();
    registry.counter({ name: 'plain_total', help: 'x' });
    const labelled = registry.histogram({ name: 'labelled', help: 'x', labels: ['a'] });
    expect(sampleOf(registry.text(), 'plain_total')).toBe(0);
    expect(parseExposition(registry.text()).get('labelled')?.samples).toEqual([]);
    labelled.with({ a: '1' });
    expect(sampleOf(registry.text(), 'labelled_count', { a: '1' })).toBe(0);
  });

  test('the exposition calls beforeText callbacks at each scrape', () => {
    const registry = new Registry();
    const depth = registry.gauge({ name: 'depth', help: 'x' }).with({});
    let now = 3;
    registry.beforeText(() => depth.set(now));
    expect(sampleOf(registry.text(), 'depth')).toBe(3);
    now = 4;
    expect(sampleOf(registry.text(), 'depth')).toBe(4);
  });

  test('the exposition writes infinity, NaN, very large and very small values', () => {
    const registry = new Registry();
    const gauge = registry.gauge({ name: 'g', help: 'x', labels: ['v'] });
    for (const value of [Infinity, -Infinity, NaN, 1e21, 1e-8]) gauge.with({ v: `${value}` }).set(value);
    const samples = parseExposition(registry.text()).get('g')?.samples ?? [];
    expect(samples.map(({ value }) => value)).toEqual([Infinity, -Infinity, NaN, 1e21, 1e-8]);
  });
});

test('the same labels in any order give the same series', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'c_total', help: 'x', labels: ['a', 'b'] });
  counter.with({ a: '1', b: '2' }).inc();
  counter.with({ b: '2', a: '1' }).inc();
  // this series would collide with the first one if values were not escaped
  counter.with({ a: '1","b="2', b: '' }).inc();
  expect(sampleOf(registry.text(), 'c_total', { a: '1', b: '2' })).toBe(2);
  expect(parseExposition(registry.text()).get('c_total')?.samples).toHaveLength(2);
});

test('a histogram ignores NaN and counts all other values, each in the first bucket that fits', () => {
  const registry = new Registry();
  const buckets = exponentialBuckets(1e-8, 10, 12);
  expect(buckets[2]).toBe(1e-6);
  const series = registry.histogram({ name: 'h', help: 'x', buckets }).with({});
  for (const bound of buckets) series.observe(bound);
  series.observe(-1);
  series.observe(1e9);
  series.observe(NaN);
  const counts = parseExposition(registry.text())
    .get('h')
    ?.samples.filter(({ name }) => name === 'h_bucket')
    .map(({ value }) => value);
  expect(counts).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
  expect(sampleOf(registry.text(), 'h_sum')).not.toBeNaN();
});

test('a counter rejects negative increments and NaN', () => {
  const counter = new Registry().counter({ name: 'c_total', help: 'x' }).with({});
  expect(() => counter.inc(-1)).toThrow('a counter cannot be incremented by -1');
  expect(() => counter.inc(NaN)).toThrow(RangeError);
});

test('invalid metric declarations are rejected', () => {
  const registry = new Registry();
  registry.counter({ name: 'taken', help: 'x' });
  const wrong = [
    () => registry.gauge({ name: 'taken', help: 'x' }),
    () => registry.gauge({ name: '1st', help: 'x' }),
    () => registry.gauge({ name: 'a-b', help: 'x' }),
    () => registry.gauge({ name: 'g1', help: 'x', labels: ['__name__'] }),
    () => registry.gauge({ name: 'g2', help: 'x', labels: ['a', 'a'] }),
    () => registry.histogram({ name: 'h1', help: 'x', labels: ['le'] }),
    () => registry.histogram({ name: 'h2', help: 'x', buckets: [1, 1] }),
    () => registry.histogram({ name: 'h3', help: 'x', buckets: [1, Infinity] }),
    () => registry.histogram({ name: 'h4', help: 'x', buckets: [] }),
  ];
  for (const declare of wrong) expect(declare).toThrow(MetricError);
});

test.for([
  ['a\n', 'not a sample'],
  ['a 1\n', 'precedes the first # TYPE line'],
  ['# TYPE a gauge\na 1\n', 'does not follow its # HELP line'],
  ['# HELP a x\n# TYPE a gauge\na 1', 'no newline'],
  ['# HELP a x\n# TYPE a gauge\na 1\na 2\n', 'duplicate series'],
  ['# HELP a x\n# TYPE a gauge\nb 1\n', 'not a sample of'],
  ['# HELP a x\n# TYPE a gauge\na{b="\\x"} 1\n', 'not labels'],
  ['# HELP a x\n# TYPE a gauge\na{b="1",} 1\n', 'not labels'],
  ['# HELP a x\n# TYPE a gauge\na 0x1\n', 'not a number'],
  ['# HELP a x\n# TYPE a counter\na -1\n', 'below 0'],
  ['# HELP a x\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n', 'bounds'],
  [
    '# HELP a x\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
    'decrease',
  ],
  ['# HELP a x\n# TYPE a histogram\na_bucket{le="+Inf"} 1\na_sum 1\na_count 2\n', 'differs from'],
] as const)('parseExposition rejects %j', ([text, message]) => {
  expect(() => parseExposition(text)).toThrow(message);
});
