import { foreignKind } from '../kind.ts';
import type { KubeObject } from '../object.ts';

/** Address of a webhook and the CA of its certificate. */
export interface WebhookClientConfig {
  readonly service?: {
    readonly namespace: string;
    readonly name: string;
    readonly path?: string;
    readonly port?: number;
  };
  readonly url?: string;
  /** CA certificates, PEM in base64. @default the trust store of the API server's system */
  readonly caBundle?: string;
}

/** A webhook in a configuration. */
export interface AdmissionWebhook {
  /** Domain name of at least three parts, unique within its configuration. */
  readonly name: string;
  readonly clientConfig: WebhookClientConfig;
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly apiVersions: readonly string[];
    readonly resources: readonly string[];
    readonly operations: readonly string[];
    readonly scope?: string;
  }[];
  readonly sideEffects: string;
  readonly admissionReviewVersions: readonly string[];
  readonly failurePolicy?: string;
  readonly timeoutSeconds?: number;
  readonly matchPolicy?: string;
  readonly namespaceSelector?: object;
  readonly objectSelector?: object;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  /** Reinvocation policy; for mutating webhooks only. */
  readonly reinvocationPolicy?: string;
}

/** A ValidatingWebhookConfiguration or MutatingWebhookConfiguration (admissionregistration.k8s.io/v1). */
export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly AdmissionWebhook[];
}

const base = { group: 'admissionregistration.k8s.io', version: 'v1', scope: 'Cluster' } as const;

export const ValidatingWebhookConfiguration = foreignKind<WebhookConfiguration>({
  ...base,
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
});

export const MutatingWebhookConfiguration = foreignKind<WebhookConfiguration>({
  ...base,
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
});
