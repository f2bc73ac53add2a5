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

/** A `caBundle` in an object. */
interface Place {
  readonly path: string;
  readonly caBundle: string | undefined;
}

/** An object in which the API server is told whom to trust. */
export interface TrustedIn<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>;
  readonly name: string;
  look(client: TrustClient, signal: AbortSignal): Promise<{ object: KubeObject; places: readonly Place[] }>;
}

/** All objects in which these webhooks are named. */
export function placesOf(configuration: string, webhooks: readonly Webhook[]): TrustedIn[] {
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

/** Annotations by which another controller sets `caBundle`: cert-manager's cainjector, OpenShift's service CA. */
const INJECTORS = [
  'cert-manager.io/inject-ca-from',
  'cert-manager.io/inject-ca-from-secret',
  'cert-manager.io/inject-apiserver-ca',
  'service.beta.openshift.io/inject-cabundle',
];

/** The object's `caBundle` belongs to another controller and lacks the authority of the certificate that is served. */
class ForeignBundleError extends Error {
  readonly code = 'FOREIGN_BUNDLE';

  constructor(annotation: string) {
    super(
      `its caBundle is set by another controller (annotation ${annotation}) and lacks the authority of the certificate that is served here`,
    );
    this.name = 'ForeignBundleError';
  }
}

/**
 * Lets authorities be trusted in an object.
 *
 * Guarantees: only the `caBundle` of our own webhooks is written, and only over the version that was read; an object
 * whose `caBundle` another controller sets is not written.
 * @param change gives the `caBundle` to write; undefined when it is good as it is
 * @returns the `caBundle` of each of our webhooks in it as they were before; undefined when it has none of ours
 * @throws ForeignBundleError
 */
async function trustIn(
  target: TrustedIn,
  change: (caBundle: string | undefined) => string | undefined,
  client: TrustClient,
  signal: AbortSignal,
): Promise<readonly (string | undefined)[] | undefined> {
  const found = await target.look(client, signal).catch((error: unknown) => {
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
  /** The `caBundle` of each webhook before the update. */
  readonly bundles: readonly (string | undefined)[];
}

/** Updates the `caBundle` in all targets. Logs failures. @returns undefined if the signal aborted */
export async function trustInAll(
  targets: readonly TrustedIn[],
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
        'The API server may not trust the webhooks, retrying',
      );
    }
  }
  return { complete, bundles };
}

function inConfiguration(
  kind: Kind<WebhookConfiguration>,
  name: string,
  ours: ReadonlySet<string>,
): TrustedIn<WebhookConfiguration> {
  return {
    kind,
    name,
    look: async (client, signal) => {
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

function inCrd(name: string): TrustedIn<CustomResourceDefinition> {
  return {
    kind: CustomResourceDefinition,
    name,
    look: async (client, signal) => {
      const object = await client.get(CustomResourceDefinition, { name }, { signal });
      const { conversion } = object.spec;
      if (conversion?.strategy !== 'Webhook') return { object, places: [] };
      const { caBundle } = conversion.webhook.clientConfig;
      return { object, places: [{ path: '/spec/conversion/webhook/clientConfig/caBundle', caBundle }] };
    },
  };
}
