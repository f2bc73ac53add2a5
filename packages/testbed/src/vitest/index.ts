import { test as base, inject } from 'vitest';
import { Cluster } from '../kubernetes/cluster.ts';
import { requestSharedPart } from './broker.ts';
import './global-setup.ts';

export interface TestbedFixtures {
  /** A control plane that all test files share. Names of cluster-scoped objects must be unique to the test file. */
  readonly cluster: Cluster;
  /** The same control plane, with KubeVirt installed. */
  readonly kubevirt: Cluster;
  /** A namespace that only this test file uses. */
  readonly namespace: string;
}

/**
 * vitest's `test` with the shared parts as fixtures. A part is started when a test first uses it. A test that needs its
 * own control plane, for example to kill it, calls `startControlPlane()`.
 */
export const test = base
  .extend('cluster', { scope: 'worker' }, async ({}, { onCleanup }) => {
    const cluster = await Cluster.connect(await requestSharedPart(inject('testbed'), 'control-plane'));
    onCleanup(() => cluster[Symbol.asyncDispose]());
    return cluster;
  })
  .extend('kubevirt', { scope: 'worker' }, async ({ cluster }) => {
    await requestSharedPart(inject('testbed'), 'kubevirt');
    return cluster;
  })
  .extend('namespace', { scope: 'file' }, async ({ cluster }, { onCleanup }) => {
    const namespace = await cluster.namespace();
    onCleanup(() => namespace[Symbol.asyncDispose]());
    return namespace.name;
  });
