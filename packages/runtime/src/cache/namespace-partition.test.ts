import { expect, test } from 'vitest';
import type { ConfigMap } from '../../test/kinds.ts';
import { apiError, ConnectionError } from '../client/errors.ts';
import { NamespacePartition } from './namespace-partition.ts';

const refusal = apiError('no', { status: 403 });
const outage = new ConnectionError('refused');
const many = (times: number, error: Error) => Array.from({ length: times }, () => error);

test.for([
  ['a refusal lasts from the third on', many(4, refusal), ['again', 'again', 'lasts', 'again']],
  [
    'another failure from the seventh on, and is told until then',
    many(8, outage),
    [...Array.from({ length: 6 }, () => 'may pass'), 'lasts', 'again'],
  ],
  [
    'what follows a lasting one is told if it is something else',
    [...many(3, refusal), outage, refusal],
    ['again', 'again', 'lasts', 'may pass', 'again'],
  ],
] as const)('%s', ([, errors, news]) => {
  const section = new NamespacePartition<ConfigMap>('a');
  expect(errors.map((error) => section.failed(error))).toEqual(news);
  expect(section.isFailing).toBe(true);
  expect([section.succeeded(), section.succeeded()]).toEqual([true, false]);
  expect(section.isFailing).toBe(false);
});

test('failures with a success between them are not in a row', () => {
  const section = new NamespacePartition<ConfigMap>('a');
  for (const error of many(2, refusal)) section.failed(error);
  section.succeeded();
  for (const error of many(2, refusal)) section.failed(error);
  expect(section.isFailing).toBe(false);
});

test('what waits is handed over once, when it is let in', () => {
  const handed: string[][] = [];
  const section = new NamespacePartition<ConfigMap>('a', (objects) => {
    handed.push([...objects].map(({ metadata }) => metadata.name));
  });
  const object = (name: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'a', name, uid: name, resourceVersion: '1' },
  });
  section.staged?.put('a/x', object('x'));
  section.staged?.put('a/y', object('y'));
  section.listed();
  expect(section.isPublished).toBe(false);
  section.letIn();
  section.letIn();
  expect(handed).toEqual([['x', 'y']]);
  expect([section.isPublished, section.staged]).toEqual([true, undefined]);
});
