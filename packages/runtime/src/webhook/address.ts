import type { WebhookClientConfig } from '../kind/builtin/webhook-configuration.ts';

/** Where the API server finds the webhooks: the same for `webhookManifests` and for the manager. */
export type WebhookAddress =
  | {
      readonly service: {
        readonly namespace: string;
        readonly name: string;
        /** Of the Service. @default 443 */
        readonly port?: number;
      };
    }
  /** `https://host:port`, for what runs outside of the cluster. */
  | { readonly url: string };

/** For one path there. Without `caBundle`, which the running program fills in. */
export function clientConfigOf(address: WebhookAddress, path: string): WebhookClientConfig {
  return 'url' in address
    ? { url: new URL(path, address.url).href }
    : { service: { ...address.service, path } };
}

/** The names that the certificate must have. */
export function namesOf(address: WebhookAddress): string[] {
  if ('url' in address) return [new URL(address.url).hostname.replace(/^\[|\]$|\.$/g, '')];
  const { name, namespace } = address.service;
  return [`${name}.${namespace}.svc`];
}
