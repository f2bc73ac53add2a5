import type { X509Certificate } from 'node:crypto';
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
import { bundleOf, bundleWith } from './bundle.ts';

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

/**
 * Lets these authorities be trusted in an object.
 *
 * Guarantees: only the `caBundle` of our own webhooks is written, and only over what was seen.
 * @returns the fingerprints of those of ours that all places in it had before; undefined when nobody asks there
 */
export async function trustIn(
  target: TrustedIn,
  wanted: readonly X509Certificate[],
  commonName: string,
  client: TrustClient,
  signal: AbortSignal,
): Promise<ReadonlySet<string> | undefined> {
  const found = await target.look(client, signal).catch((error: unknown) => {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  });
  if (found === undefined || found.places.length === 0) return undefined;
  const { object, places } = found;
  const changes = places.flatMap(({ path, caBundle }) => {
    const value = bundleWith(caBundle, wanted, commonName);
    return value === undefined ? [] : [{ op: 'add', path, value } as const];
  });
  if (changes.length > 0) {
    const { resourceVersion } = object.metadata;
    const unchanged = { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion } as const;
    await client.jsonPatch(target.kind, { name: target.name }, [unchanged, ...changes], { signal });
  }
  return places
    .map(({ caBundle }) => new Set(bundleOf(caBundle, commonName).ours.map((each) => each.fingerprint256)))
    .reduce((all, each) => all.intersection(each));
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
