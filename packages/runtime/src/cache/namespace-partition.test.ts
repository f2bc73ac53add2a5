import { expect, test } from 'vitest';
import type { ConfigMap } from '../../test/kinds.ts';
import { apiError, ConnectionError } from '../client/errors.ts';
import { NamespacePartition } from './namespace-partition.ts';

const forbidden = apiError('no', { status: 403 });
const outage = new ConnectionError('refused');
const many = (times: number, error: Error) => Array.from({ length: times }, () => error);

test.for([
  [
    'the third consecutive 403 of a namespace makes its failure persistent',
    many(4, forbidden),
    ['repeated', 'repeated', 'persistent', 'repeated'],
  ],
  [
    'the seventh consecutive failure other than a 403 is persistent, and the first six are reported as transient',
    many(8, outage),
    [...Array.from({ length: 6 }, () => 'transient'), 'persistent', 'repeated'],
  ],
  [
    'a different error during a persistent failure is reported as transient',
    [...many(3, forbidden), outage, forbidden],
    ['repeated', 'repeated', 'persistent', 'transient', 'repeated'],
  ],
] as const)('%s', ([, errors, results]) => {
  const partition = new NamespacePartition<ConfigMap>('a');
  expect(errors.map((error) => partition.failed(error))).toEqual(results);
  expect(partition.isFailing).toBe(true);
  expect([partition.succeeded(), partition.succeeded()]).toEqual([true, false]);
  expect(partition.isFailing).toBe(false);
});

test('a successful list or watch resets the failure count of a namespace', () => {
  const partition = new NamespacePartition<ConfigMap>('a');
  for (const error of many(2, forbidden)) partition.failed(error);
  partition.succeeded();
  for (const error of many(2, forbidden)) partition.failed(error);
  expect(partition.isFailing).toBe(false);
});

test('objects are staged until publish passes them to onPublish; a second call of publish does nothing', () => {
  const published: string[][] = [];
  const partition = new NamespacePartition<ConfigMap>('a', (objects) => {
    published.push([...objects].map(({ metadata }) => metadata.name));
  });
  const object = (name: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'a', name, uid: name, resourceVersion: '1' },
  });
  partition.staged?.put('a/x', object('x'));
  partition.staged?.put('a/y', object('y'));
  partition.listed();
  expect(partition.isPublished).toBe(false);
  partition.publish();
  partition.publish();
  expect(published).toEqual([['x', 'y']]);
  expect([partition.isPublished, partition.staged]).toEqual([true, undefined]);
});
