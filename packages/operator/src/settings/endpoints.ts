import { isLoopback } from '@vmwright/runtime';
import type { Flag } from './flags.ts';
import { addressIn, listIn, SettingsError, secureUrlIn, whole, wrong } from './values.ts';

/** An empty host stands for all addresses of this machine. */
export interface AddressSettings {
  readonly host: string;
  readonly port: number;
}

/** What the operator serves besides webhooks. */
export interface StatusSettings extends AddressSettings {
  /** Where metrics are served over HTTPS to clients with a token; undefined: nowhere. */
  readonly secure: AddressSettings | undefined;
  /** Whether metrics are served without authentication, whatever the address. */
  readonly openMetrics: boolean;
}

export interface WebhookSettings {
  readonly port: number;
  readonly url: string | undefined;
  /** Folder with the certificate to serve; undefined: the operator issues its own. */
  readonly certificateFolder: string | undefined;
  /** Which client certificates admission requests need; undefined: none. */
  readonly clients: { readonly caFile: string; readonly names: readonly string[] | undefined } | undefined;
}

type Flags = { readonly [F in Flag]?: string };

/** @throws SettingsError */
export function statusIn(flags: Flags, text: (flag: Flag) => string): StatusSettings {
  const address = addressIn('status-address', flags['metrics-addr'] ?? text('status-address'));
  const auth = text('metrics-auth');
  if (auth !== 'token' && auth !== 'off') throw wrong('metrics-auth', auth, 'token or off');
  // On a loopback address the metrics are open already, and operators side by side would contend for the port.
  const bind = flags['metrics-bind-address'] || (isLoopback(address.host) ? '0' : ':8443');
  const secure = bind === '0' ? undefined : addressIn('metrics-bind-address', bind);
  return { ...address, secure, openMetrics: auth === 'off' };
}

/** @throws SettingsError */
export function webhookIn(flags: Flags, text: (flag: Flag) => string): WebhookSettings {
  const caFile = flags['webhook-client-ca'] || undefined;
  const names = listIn(flags['webhook-client-name']);
  if (caFile === undefined && names !== undefined)
    throw new SettingsError(
      '--webhook-client-name needs --webhook-client-ca, the authorities that issue the certificates',
    );
  return {
    port: whole('webhook-port', text('webhook-port'), 0, 65_535),
    url: secureUrlIn('--webhook-url', flags['webhook-url']),
    certificateFolder: flags['webhook-cert-dir'] || undefined,
    clients: caFile === undefined ? undefined : { caFile, names },
  };
}
