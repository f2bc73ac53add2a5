import { test as base, inject } from 'vitest';
import { Cluster } from '../kubernetes/cluster.ts';
import { askBroker } from './broker.ts';
import './global-setup.ts';

export interface TestbedFixtures {
  /** A control plane that all test files share. Cluster-wide objects need names of the file's own. */
  readonly cluster: Cluster;
  /** The same control plane, with KubeVirt on it. */
  readonly kubevirt: Cluster;
  /** A namespace of this test file's own. */
  readonly namespace: string;
}

/**
 * vitest's `test` with the shared parts as fixtures; a test that names one in its arguments gets it, started if it is
 * the first. For a private control plane, to kill or to slow down: `startControlPlane()`.
 */
export const test = base
  .extend('cluster', { scope: 'worker' }, async ({}, { onCleanup }) => {
    const cluster = await Cluster.connect(await askBroker(inject('testbed'), 'control-plane'));
    onCleanup(() => cluster[Symbol.asyncDispose]());
    return cluster;
  })
  .extend('kubevirt', { scope: 'worker' }, async ({ cluster }) => {
    await askBroker(inject('testbed'), 'kubevirt');
    return cluster;
  })
  .extend('namespace', { scope: 'file' }, async ({ cluster }, { onCleanup }) => {
    const namespace = await cluster.namespace();
    onCleanup(() => namespace[Symbol.asyncDispose]());
    return namespace.name;
  });
