import type { WebhookClientConfig } from '../kind/builtin/webhook-configuration.ts';

/**
 * Address at which the API server reaches the webhooks. `webhookManifests` and the manager must get the same address.
 */
export type WebhookAddress =
  | {
      readonly service: {
        readonly namespace: string;
        readonly name: string;
        /** Port of the Service. @default 443 */
        readonly port?: number;
      };
    }
  /** `https://host:port`, for programs that run outside of the cluster. */
  | { readonly url: string };

/** Returns the `clientConfig` of a path, without `caBundle`, which the running program or cert-manager fills in. */
export function clientConfigOf(address: WebhookAddress, path: string): WebhookClientConfig {
  return 'url' in address
    ? { url: new URL(path, address.url).href }
    : { service: { ...address.service, path } };
}

/** Returns the names that the certificate must contain. */
export function namesOf(address: WebhookAddress): string[] {
  if ('url' in address) return [new URL(address.url).hostname.replace(/^\[|\]$|\.$/g, '')];
  const { name, namespace } = address.service;
  return [`${name}.${namespace}.svc`];
}
