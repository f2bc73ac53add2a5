import { isLoopback } from '@vmwright/runtime';
import { aliasOf, type Sources } from './sources.ts';
import {
  invalidSetting,
  parseAddress,
  parseHttpsUrl,
  parseInteger,
  parseList,
  SettingsError,
} from './values.ts';

/** Address to listen on. An empty host means all addresses of this machine. */
export interface AddressSettings {
  readonly host: string;
  readonly port: number;
}

/** Address of the health endpoints, and where and how the metrics are served. */
export interface StatusSettings extends AddressSettings {
  /** Address at which clients with a token read the metrics over HTTPS; undefined: not served. */
  readonly secure: AddressSettings | undefined;
  /** Whether metrics are served without authentication even if the address is not a loopback address. */
  readonly openMetrics: boolean;
}

export interface WebhookSettings {
  readonly port: number;
  /** URL at which the API server reaches the webhooks; undefined: the operator's Service. */
  readonly url: string | undefined;
  /** Folder with the certificate to serve; undefined: the operator issues its own. */
  readonly certificateFolder: string | undefined;
  /**
   * CA and names of the client certificates that admission requests must present; undefined: no certificate is
   * required.
   */
  readonly clients: { readonly caFile: string; readonly names: readonly string[] | undefined } | undefined;
}

/** @throws SettingsError */
export function parseStatusSettings(sources: Sources): StatusSettings {
  const { text, name } = sources;
  const flag = aliasOf(sources, 'status-address', 'metrics-addr');
  const address = parseAddress(name(flag), text(flag));
  const auth = text('metrics-auth');
  if (auth !== 'token' && auth !== 'off') throw invalidSetting(name('metrics-auth'), auth, 'token or off');
  // On a loopback address, HTTPS is off by default, for two reasons. The metrics are already readable there without a
  // token. And several operators on one machine would need the same port.
  const bind = text('metrics-bind-address') || (isLoopback(address.host) ? '0' : ':8443');
  const secure = bind === '0' ? undefined : parseAddress(name('metrics-bind-address'), bind);
  return { ...address, secure, openMetrics: auth === 'off' };
}

/** @throws SettingsError */
export function parseWebhookSettings({ text, name }: Sources): WebhookSettings {
  const caFile = text('webhook-client-ca') || undefined;
  const names = parseList(text('webhook-client-name'));
  if (caFile === undefined && names !== undefined)
    throw new SettingsError(
      `${name('webhook-client-name')} needs --webhook-client-ca, the file with the CAs of the client certificates`,
    );
  return {
    port: parseInteger(name('webhook-port'), text('webhook-port'), 0, 65_535),
    url: parseHttpsUrl(name('webhook-url'), text('webhook-url')),
    certificateFolder: text('webhook-cert-dir') || undefined,
    clients: caFile === undefined ? undefined : { caFile, names },
  };
}
