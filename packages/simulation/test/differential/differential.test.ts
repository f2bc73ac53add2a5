import { Client, CustomResourceDefinition, crdOf, kubeconfigAccess, nodeWorld } from '@vmwright/runtime';
import { condition } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { vi } from 'vitest';
import { compareAll } from '../compare-all.ts';
import { compare } from './compare.ts';
import { DECLARED } from './kinds.ts';

/** Number of concurrent sequences. More would not increase the throughput of an API server on two cores. */
const CONCURRENCY = 24;

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

test('the model answers random operations like the real API server and ends with the same objects', {
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

  await compareAll({
    sequences: 1_000,
    concurrency: CONCURRENCY,
    expected: EXPECTED,
    least: 10,
    compare: async (seed, onOutcome) => {
      const { outcomes, difference } = await compare(seed, { clients: [alpha, beta], namespace, pause });
      for (const outcome of outcomes) onOutcome(outcome);
      return difference;
    },
  });
});

/** Outcomes that must occur in the run of all sequences: for every operation, success and each possible error. */
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
