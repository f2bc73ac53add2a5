import { type Logger, messageOf } from '@vmwright/core';
import type { Client } from '../../client/client.ts';
import { NotFoundError } from '../../client/errors.ts';
import {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  type WebhookConfiguration,
} from '../../kind/builtin/webhook-configuration.ts';
import { CustomResourceDefinition } from '../../kind/crd.ts';
import { type Kind, resourceOf } from '../../kind/kind.ts';
import type { KubeObject } from '../../kind/object.ts';
import type { Webhook } from '../endpoints.ts';
import { webhookName } from '../manifests.ts';

export type TrustClient = Pick<Client, 'get' | 'jsonPatch'>;

/** `caBundle` field in an object. */
interface BundleField {
  readonly path: string;
  readonly caBundle: string | undefined;
}

/** Object with the `caBundle` of webhooks: a webhook configuration or a CRD. */
export interface TrustTarget<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>;
  readonly name: string;
  read(
    client: TrustClient,
    signal: AbortSignal,
  ): Promise<{ object: KubeObject; places: readonly BundleField[] }>;
}

/** Returns all objects that contain the `caBundle` of these webhooks. */
export function trustTargetsOf(configuration: string, webhooks: readonly Webhook[]): TrustTarget[] {
  const inEach = (kind: Kind<WebhookConfiguration>, type: 'validate' | 'mutate') => {
    const ours = webhooks.flatMap((each) =>
      each.type === 'admission' && each[type] !== undefined ? [webhookName(type, each.kind)] : [],
    );
    return ours.length === 0 ? [] : [inConfiguration(kind, configuration, new Set(ours))];
  };
  return [
    ...inEach(ValidatingWebhookConfiguration, 'validate'),
    ...inEach(MutatingWebhookConfiguration, 'mutate'),
    ...webhooks.flatMap(({ type, kind }) => (type === 'conversion' ? [inCrd(resourceOf(kind))] : [])),
  ];
}

/** Annotations that make another controller set `caBundle`: cert-manager's cainjector, OpenShift's service CA. */
const INJECTORS = [
  'cert-manager.io/inject-ca-from',
  'cert-manager.io/inject-ca-from-secret',
  'cert-manager.io/inject-apiserver-ca',
  'service.beta.openshift.io/inject-cabundle',
];

/** Thrown when another controller manages the `caBundle`, which lacks the CA of the served certificate. */
class ForeignBundleError extends Error {
  readonly code = 'FOREIGN_BUNDLE';

  constructor(annotation: string) {
    super(
      `another controller manages the caBundle (annotation ${annotation}), which lacks the CA of the served certificate`,
    );
    this.name = 'ForeignBundleError';
  }
}

/**
 * Updates the `caBundle` of the program's webhooks in an object.
 *
 * Guarantees: never writes the `caBundle` of other webhooks, or a `caBundle` that another controller manages. Each
 * write has a resourceVersion precondition.
 * @param change returns the `caBundle` to write; undefined if no change is needed
 * @returns the previous `caBundle` of each webhook; undefined if the object does not exist or has no such webhook
 * @throws ForeignBundleError
 */
async function trustIn(
  target: TrustTarget,
  change: (caBundle: string | undefined) => string | undefined,
  client: TrustClient,
  signal: AbortSignal,
): Promise<readonly (string | undefined)[] | undefined> {
  const found = await target.read(client, signal).catch((error: unknown) => {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  });
  if (found === undefined || found.places.length === 0) return undefined;
  const { object, places } = found;
  const changes = places.flatMap(({ path, caBundle }) => {
    const value = change(caBundle);
    return value === undefined ? [] : [{ op: 'add', path, value } as const];
  });
  if (changes.length > 0) {
    const { resourceVersion, annotations = {} } = object.metadata;
    const injector = INJECTORS.find((annotation) => annotations[annotation] !== undefined);
    if (injector !== undefined) throw new ForeignBundleError(injector);
    const unchanged = { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion } as const;
    await client.jsonPatch(target.kind, { name: target.name }, [unchanged, ...changes], { signal });
  }
  return places.map(({ caBundle }) => caBundle);
}

/** Result of an update of all targets. */
export interface TrustResult {
  /** Whether all targets could be read and written. */
  readonly complete: boolean;
  /** Previous `caBundle` of each webhook in the targets that could be read and written. */
  readonly bundles: readonly (string | undefined)[];
}

/** Updates the `caBundle` in all targets. Logs failures. @returns undefined if the signal aborted */
export async function trustInAll(
  targets: readonly TrustTarget[],
  change: (caBundle: string | undefined) => string | undefined,
  { client, logger }: { readonly client: TrustClient; readonly logger: Logger },
  signal: AbortSignal,
): Promise<TrustResult | undefined> {
  const bundles: (string | undefined)[] = [];
  let complete = true;
  for (const target of targets) {
    try {
      bundles.push(...((await trustIn(target, change, client, signal)) ?? []));
    } catch (error) {
      if (signal.aborted) return undefined;
      complete = false;
      logger.warn(
        { kind: target.kind.kind, object: target.name, error: messageOf(error) },
        'Updating the caBundle failed, retrying',
      );
    }
  }
  return { complete, bundles };
}

function inConfiguration(
  kind: Kind<WebhookConfiguration>,
  name: string,
  ours: ReadonlySet<string>,
): TrustTarget<WebhookConfiguration> {
  return {
    kind,
    name,
    read: async (client, signal) => {
      const object = await client.get(kind, { name }, { signal });
      const places = (object.webhooks ?? []).flatMap((webhook, index) =>
        ours.has(webhook.name)
          ? [{ path: `/webhooks/${index}/clientConfig/caBundle`, caBundle: webhook.clientConfig.caBundle }]
          : [],
      );
      return { object, places };
    },
  };
}

function inCrd(name: string): TrustTarget<CustomResourceDefinition> {
  return {
    kind: CustomResourceDefinition,
    name,
    read: async (client, signal) => {
      const object = await client.get(CustomResourceDefinition, { name }, { signal });
      const { conversion } = object.spec;
      if (conversion?.strategy !== 'Webhook') return { object, places: [] };
      const { caBundle } = conversion.webhook.clientConfig;
      return { object, places: [{ path: '/spec/conversion/webhook/clientConfig/caBundle', caBundle }] };
    },
  };
}
