import {
  CustomResourceDefinition,
  crdOf,
  type KubeObject,
  rbacOf,
  webhookManifests,
} from '@vmwright/runtime';
import { KINDS, NAME, needs, webhookAddress, webhooks } from './declarations.ts';
import { networkPolicy } from './network-policy.ts';

export interface ManifestOptions {
  /** In which the program runs. */
  readonly namespace: string;
  /** Those it looks at. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** Where it is reached, when it runs outside of the cluster. @default by its Service */
  readonly webhookUrl?: string | undefined;
  /** `namespace/name` of a cert-manager Certificate that cert-manager has trusted. @default the program does it */
  readonly injectCaFrom?: string | undefined;
  /** Address ranges from which the API servers call webhooks. @default no network policy is written */
  readonly apiServers?: readonly string[] | undefined;
}

/** What is applied to a cluster for the program to work in it, from its own declarations. */
export function manifests(options: ManifestOptions): Manifests {
  const { namespace, namespaces, webhookUrl, injectCaFrom, apiServers } = options;
  const address = webhookAddress(namespace, webhookUrl);
  const asked = webhookManifests({ name: NAME, webhooks: webhooks(namespaces), address, injectCaFrom });
  // The CRD of a kind that is converted says who converts it, and so comes with the webhooks.
  const converted = asked.filter(({ kind }) => kind === CustomResourceDefinition.kind);
  const names = new Set(converted.map(({ metadata }) => metadata.name));
  const plain = KINDS.map((kind) => crdOf(kind)).filter(({ metadata }) => !names.has(metadata.name));
  return {
    crds: [...plain, ...converted],
    rbac: rbacOf(needs(namespace, namespaces)),
    webhooks: asked.filter((each) => !converted.includes(each)),
    networkPolicies: apiServers === undefined ? [] : [networkPolicy(namespace, apiServers)],
  };
}

export interface Manifests {
  readonly crds: readonly KubeObject[];
  readonly rbac: readonly KubeObject[];
  readonly webhooks: readonly KubeObject[];
  readonly networkPolicies: readonly KubeObject[];
}
