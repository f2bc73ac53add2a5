import { rmSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { startControlPlane } from '../kubernetes/control-plane.ts';
import { temporaryFolder } from '../process/run-supervisor.ts';
import { canary } from './canary.ts';
import { CanarySearches } from './searches.ts';

test('all objects that service accounts write, except Secrets, are searched for credentials; objects that users write are not searched', async () => {
  const folder = await temporaryFolder('canaries');
  vi.stubEnv('VMWRIGHT_CANARY_SEARCHES', folder);
  try {
    await using controlPlane = await startControlPlane();
    const { cluster } = controlPlane;
    const admin = (...args: readonly string[]) => cluster.kubectl(args);
    await admin('create', 'serviceaccount', 'writer');
    await admin(
      'create',
      'clusterrolebinding',
      'writer',
      '--clusterrole=admin',
      '--serviceaccount=default:writer',
    );
    const kubeconfig = await cluster.kubeconfigFor({ namespace: 'default', name: 'writer' });
    const writer = (...args: readonly string[]) => cluster.kubectl(args, { kubeconfig });
    // Waits until the API server's authorizer has observed the binding and the rules of the aggregated role.
    const canWrite = () => cluster.tryKubectl(['auth', 'can-i', 'create', 'configmaps'], { kubeconfig });
    await expect.poll(async () => (await canWrite()).stdout).toContain('yes');
    const literal = (name: string) => `--from-literal=a=${canary(name)}`;
    await admin('create', 'configmap', 'by-user', literal('by-a-user'));
    await writer('create', 'secret', 'generic', 'secret', literal('in-a-secret'));
    await writer('create', 'configmap', 'created', literal('in-a-created-object'));
    await writer('delete', 'configmap', 'created');
    await writer('annotate', 'configmap', 'by-user', `message=${canary('in-a-patch')}`);
  } finally {
    vi.unstubAllEnvs();
  }
  expect(() => new CanarySearches(folder).report()).toThrow(
    /\nan object that a service account wrote contains: in-a-created-object, in-a-patch \(see .*\)$/,
  );
  rmSync(folder, { recursive: true });
});
