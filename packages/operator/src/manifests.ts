import { crdOf, type KubeObject, rbacOf, webhookManifests } from '@vmwright/runtime';
import { admissions, KINDS, NAME, needs, webhookAddress } from './declarations.ts';

export interface ManifestOptions {
  /** In which the program runs. */
  readonly namespace: string;
  /** Those it looks at. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** Where it is reached, when it runs outside of the cluster. @default by its Service */
  readonly webhookUrl?: string | undefined;
}

/** What is applied to a cluster for the program to work in it, from its own declarations. */
export function manifests({ namespace, namespaces, webhookUrl }: ManifestOptions): Manifests {
  const webhooks = admissions(namespaces);
  const address = webhookAddress(namespace, webhookUrl);
  return {
    crds: KINDS.map((kind) => crdOf(kind)),
    rbac: rbacOf(needs(namespace, namespaces)),
    webhooks: webhookManifests({ name: NAME, webhooks, address }),
  };
}

export interface Manifests {
  readonly crds: readonly KubeObject[];
  readonly rbac: readonly KubeObject[];
  readonly webhooks: readonly KubeObject[];
}
