import { Client, CustomResourceDefinition, crdOf, kubeconfigAccess, nodeWorld } from '@vmwright/runtime';
import { condition } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, vi } from 'vitest';
import { compare, type Difference } from './compare.ts';
import { DECLARED } from './kinds.ts';

const SEQUENCES = 1_000;
/** More does not make the API server of two cores faster. */
const AT_A_TIME = 24;

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

test('a thousand random sequences of operations get the same answers from the model and the real API server, and leave the same objects', {
  timeout: 600_000,
}, async ({ cluster, namespace }) => {
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  await using alpha = new Client({ world: nodeWorld, access, fieldManager: 'alpha' });
  await using beta = new Client({ world: nodeWorld, access, fieldManager: 'beta' });
  await using _ = {
    [Symbol.asyncDispose]: async () => {
      for (const kind of DECLARED) await alpha.delete(CustomResourceDefinition, crdOf(kind).metadata);
    },
  };
  for (const kind of DECLARED) {
    await alpha.apply(CustomResourceDefinition, crdOf(kind));
    await cluster.waitFor(
      `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crdOf(kind).metadata.name}`,
      (crd) => condition(crd, 'Established') === 'True',
    );
    await vi.waitFor(() => alpha.list(kind, { namespace }), { timeout: 30_000, interval: 100 });
  }

  const outcomes = new Map<string, number>();
  const differences: Difference[] = [];
  let next = 0;
  const work = async () => {
    while (next < SEQUENCES && differences.length < 5) {
      next += 1;
      const compared = await compare(next, { clients: [alpha, beta], namespace, pause });
      if (compared.difference !== undefined) differences.push(compared.difference);
      for (const outcome of compared.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  expect(differences).toEqual([]);
  // It was worth comparing: every operation succeeded and was refused for each of its reasons.
  for (const expected of EXPECTED) expect(outcomes.get(expected) ?? 0, expected).toBeGreaterThan(10);
});

const EXPECTED = [
  'create succeeds',
  'create gets ALREADY_EXISTS',
  'create gets INVALID',
  'get succeeds',
  'get gets NOT_FOUND',
  'list succeeds',
  'apply succeeds',
  'apply gets CONFLICT',
  'apply gets INVALID',
  'apply gets NOT_FOUND',
  'merge succeeds',
  'merge gets CONFLICT',
  'merge gets INVALID',
  'merge gets NOT_FOUND',
  'json succeeds',
  'json gets INVALID',
  'json gets NOT_FOUND',
  'delete succeeds',
  'delete gets CONFLICT',
  'delete gets NOT_FOUND',
  'getScale succeeds',
  'setScale succeeds',
  'own succeeds',
  'garbage collected',
];
