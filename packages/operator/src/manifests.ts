import {
  CustomResourceDefinition,
  crdOf,
  type KubeObject,
  rbacOf,
  type WebhookConfiguration,
  webhookManifests,
} from '@vmwright/runtime';
import { kindsOf, NAME, programPermissions, webhookAddress, webhooks } from './declarations.ts';
import { networkPolicy } from './network-policy.ts';
import { userRoles } from './user-roles.ts';

export interface ManifestOptions {
  /** Namespace of the operator. */
  readonly namespace: string;
  /** Controllers whose CRDs, permissions and webhooks are returned, as in `--controllers`. @default all */
  readonly controllers?: ReadonlySet<string> | undefined;
  /** Namespaces that the operator watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** URL of the webhooks, for an operator outside the cluster. @default the operator's Service */
  readonly webhookUrl?: string | undefined;
  /**
   * `namespace/name` of a cert-manager Certificate. cert-manager writes the CA of this Certificate into every
   * `caBundle`.
   * @default none: the running operator writes the `caBundle`
   */
  readonly injectCaFrom?: string | undefined;
  /** Address ranges from which the API servers call webhooks; empty: any address. @default no network policy */
  readonly apiServers?: readonly string[] | undefined;
}

/** Returns the manifests to apply before the operator starts, generated from its declarations. */
export function manifests(options: ManifestOptions): Manifests {
  const { namespace, controllers, namespaces, webhookUrl, injectCaFrom, apiServers } = options;
  const address = webhookAddress(namespace, webhookUrl);
  const kinds = kindsOf(controllers);
  const enabled = webhooks(namespaces, controllers);
  const declared = webhookManifests({ name: NAME, webhooks: enabled, address, injectCaFrom });
  // The CRD of a kind with a conversion webhook names that webhook, so `webhookManifests` returns the CRD.
  const converted = declared.filter(({ kind }) => kind === CustomResourceDefinition.kind);
  const names = new Set(converted.map(({ metadata }) => metadata.name));
  const plain = kinds.map((kind) => crdOf(kind)).filter(({ metadata }) => !names.has(metadata.name));
  return {
    crds: [...plain, ...converted],
    rbac: rbacOf(programPermissions(namespace, namespaces, controllers)),
    webhooks: declared.filter((each): each is WebhookConfiguration => !names.has(each.metadata.name)),
    networkPolicies: apiServers === undefined ? [] : [networkPolicy(namespace, apiServers)],
    userRoles: kinds.flatMap(userRoles),
  };
}

export interface Manifests {
  readonly crds: readonly KubeObject[];
  /** Service account of the operator and its roles. */
  readonly rbac: readonly KubeObject[];
  readonly webhooks: readonly WebhookConfiguration[];
  readonly networkPolicies: readonly KubeObject[];
  /** Roles for users of each kind. The operator does not need them. */
  readonly userRoles: readonly KubeObject[];
}
