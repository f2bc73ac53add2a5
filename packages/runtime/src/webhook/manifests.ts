import {
  type AdmissionWebhook,
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  type WebhookConfiguration,
} from '../kind/builtin/webhook-configuration.ts';
import { type CustomResourceDefinition, crdOf } from '../kind/crd.ts';
import { apiVersionOf, type Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { clientConfigOf, type WebhookAddress } from './address.ts';
import { type Admission, admissionPath } from './admission.ts';
import type { Conversion } from './conversion.ts';
import { CONVERT_PATH, type Webhook } from './endpoints.ts';

export interface WebhookManifestsOptions {
  /** Name of the webhook configurations: the manager's name, or its option `webhooks.configuration`. */
  readonly name: string;
  readonly webhooks: readonly Webhook[];
  readonly address: WebhookAddress;
  /**
   * `namespace/name` of a cert-manager Certificate. Adds the annotation that makes cert-manager write the CA of this
   * Certificate into every `caBundle`. @default the running program writes the `caBundle`
   */
  readonly injectCaFrom?: string | undefined;
}

/**
 * Returns the manifests of webhooks: at most one ValidatingWebhookConfiguration and one MutatingWebhookConfiguration,
 * and the CRD of each converted kind. They contain no `caBundle`, so that applying them again does not overwrite it.
 */
export function webhookManifests(
  options: WebhookManifestsOptions,
): (WebhookConfiguration | CustomResourceDefinition)[] {
  const { webhooks, address } = options;
  const admissions = webhooks.filter((webhook) => webhook.type === 'admission');
  const conversions = webhooks.filter((webhook) => webhook.type === 'conversion');
  return [
    ...configuration(ValidatingWebhookConfiguration, 'validate', admissions, options),
    ...configuration(MutatingWebhookConfiguration, 'mutate', admissions, options),
    ...conversions.map((each) => convertedCrd(each, address)),
  ].map((manifest) => injected(manifest, options.injectCaFrom));
}

function injected<T extends KubeObject>(manifest: T, from: string | undefined): T {
  if (from === undefined) return manifest;
  const { metadata } = manifest;
  const annotations = { ...metadata.annotations, 'cert-manager.io/inject-ca-from': from };
  return { ...manifest, metadata: { ...metadata, annotations } };
}

/**
 * Returns the name of a webhook. Users see it in denials: `admission webhook "validate.v1.vms.example.org" denied …`.
 */
export function webhookName(type: 'validate' | 'mutate', { version, plural, group }: Kind): string {
  return [type, version, plural, group === '' ? 'core' : group].join('.');
}

function configuration(
  kind: Kind<WebhookConfiguration>,
  type: 'validate' | 'mutate',
  admissions: readonly Admission[],
  { name, address }: WebhookManifestsOptions,
): WebhookConfiguration[] {
  const webhooks = admissions.flatMap((each) => admissionWebhook(type, each, address));
  return webhooks.length === 0
    ? []
    : [{ apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name }, webhooks }];
}

function admissionWebhook(
  type: 'validate' | 'mutate',
  { kind, settings, operations: all, ...handlers }: Admission,
  address: WebhookAddress,
): AdmissionWebhook[] {
  const operations = type === 'mutate' ? all.filter((each) => each !== 'DELETE') : all;
  if (handlers[type] === undefined || operations.length === 0) return [];
  const { namespaceSelector, objectSelector, matchConditions, reinvocationPolicy } = settings;
  return [
    {
      name: webhookName(type, kind),
      clientConfig: clientConfigOf(address, admissionPath(type, kind)),
      rules: [
        {
          apiGroups: [kind.group],
          apiVersions: [kind.version],
          resources: [kind.plural, ...(settings.status ? [`${kind.plural}/status`] : [])],
          operations,
          scope: kind.scope,
        },
      ],
      // The webhook also reviews requests for other versions, converted to this one.
      matchPolicy: 'Equivalent',
      sideEffects: settings.sideEffects ?? 'None',
      admissionReviewVersions: ['v1'],
      failurePolicy: settings.failurePolicy ?? 'Fail',
      timeoutSeconds: settings.timeoutSeconds ?? 10,
      ...(namespaceSelector && { namespaceSelector }),
      ...(objectSelector && { objectSelector }),
      ...(matchConditions && { matchConditions }),
      ...(type === 'mutate' && reinvocationPolicy && { reinvocationPolicy }),
    },
  ];
}

function convertedCrd({ kind }: Conversion, address: WebhookAddress): CustomResourceDefinition {
  const crd = crdOf(kind);
  const clientConfig = clientConfigOf(address, CONVERT_PATH);
  return {
    ...crd,
    spec: {
      ...crd.spec,
      conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } },
    },
  };
}
