import { expect } from 'vitest';
import { SubjectAccessReview } from '../src/kind/builtin/reviews.ts';
import { connect } from './connect.ts';

/** Permission for a URL path. */
interface PathPermission {
  readonly verb: string;
  readonly path: string;
}

interface ResourcePermission {
  readonly verb: string;
  readonly resource: string;
  /** @default the core group */
  readonly group?: string;
  /** @default all namespaces */
  readonly namespace?: string;
  /** @default all objects */
  readonly name?: string;
}

/**
 * Waits until the API server grants these permissions to a service account or, if `isGranted` is false, denies them.
 * The authorizer watches roles and bindings, so a change takes effect some time after the response to the write.
 */
export async function waitForPermissions(
  { kubeconfig }: { readonly kubeconfig: string },
  account: { readonly namespace: string; readonly name: string },
  permissions: readonly (ResourcePermission | PathPermission)[],
  isGranted = true,
): Promise<void> {
  await using client = await connect(kubeconfig);
  const user = `system:serviceaccount:${account.namespace}:${account.name}`;
  for (const each of permissions) {
    const spec = {
      user,
      ...('path' in each ? { nonResourceAttributes: each } : { resourceAttributes: each }),
    };
    await expect.poll(async () => (await client.review(SubjectAccessReview, spec)).allowed).toBe(isGranted);
  }
}
