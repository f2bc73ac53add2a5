import { isLoopback } from '@vmwright/runtime';
import type { Flag } from './flags.ts';
import {
  invalidFlag,
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
  /** Whether metrics are served without authentication on every address. */
  readonly openMetrics: boolean;
}

export interface WebhookSettings {
  readonly port: number;
  /** URL at which the API server reaches the webhooks; undefined: the operator's Service. */
  readonly url: string | undefined;
  /** Folder with the certificate to serve; undefined: the operator issues its own. */
  readonly certificateFolder: string | undefined;
  /** Client certificates that admission requests must present; undefined: none. */
  readonly clients: { readonly caFile: string; readonly names: readonly string[] | undefined } | undefined;
}

type Flags = { readonly [F in Flag]?: string };

/** @throws SettingsError */
export function parseStatusSettings(flags: Flags, text: (flag: Flag) => string): StatusSettings {
  const address = parseAddress('--status-address', flags['metrics-addr'] ?? text('status-address'));
  const auth = text('metrics-auth');
  if (auth !== 'token' && auth !== 'off') throw invalidFlag('metrics-auth', auth, 'token or off');
  // An operator on loopback does not serve HTTPS by default: its metrics are open there already, and several operators on
  // one machine would need the same port.
  const bind = flags['metrics-bind-address'] || (isLoopback(address.host) ? '0' : ':8443');
  const secure = bind === '0' ? undefined : parseAddress('--metrics-bind-address', bind);
  return { ...address, secure, openMetrics: auth === 'off' };
}

/** @throws SettingsError */
export function parseWebhookSettings(flags: Flags, text: (flag: Flag) => string): WebhookSettings {
  const caFile = flags['webhook-client-ca'] || undefined;
  const names = parseList(flags['webhook-client-name']);
  if (caFile === undefined && names !== undefined)
    throw new SettingsError(
      '--webhook-client-name needs --webhook-client-ca, the file with the CAs of the client certificates',
    );
  return {
    port: parseInteger('--webhook-port', text('webhook-port'), 0, 65_535),
    url: parseHttpsUrl('--webhook-url', flags['webhook-url']),
    certificateFolder: flags['webhook-cert-dir'] || undefined,
    clients: caFile === undefined ? undefined : { caFile, names },
  };
}
