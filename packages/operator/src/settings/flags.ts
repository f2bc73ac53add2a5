import { parseArgs } from 'node:util';
import { SettingsError } from './values.ts';

/** All flags and their defaults. */
export const OPTIONS = {
  namespace: { type: 'string' },
  namespaces: { type: 'string' },
  'cluster-id': { type: 'string' },
  controllers: { type: 'string', default: 'vm,vmgroup' },
  'leader-elect': { type: 'string', default: 'true' },
  'enable-leader-election': { type: 'string' },
  'leader-elect-lease-duration': { type: 'string', default: '15s' },
  'leader-elect-renew-deadline': { type: 'string', default: '10s' },
  'leader-elect-retry-period': { type: 'string', default: '2s' },
  'status-address': { type: 'string', default: ':8080' },
  'metrics-addr': { type: 'string' },
  'metrics-bind-address': { type: 'string' },
  'metrics-auth': { type: 'string', default: 'token' },
  'webhook-port': { type: 'string', default: '9443' },
  'webhook-url': { type: 'string' },
  'webhook-cert-dir': { type: 'string' },
  'webhook-client-ca': { type: 'string' },
  'webhook-client-name': { type: 'string' },
  'log-level': { type: 'string', default: 'info' },
  'cloud-timeout': { type: 'string', default: '10s' },
  'vm-refresh': { type: 'string', default: '15s' },
  'vm-unknown-after': { type: 'string', default: '25s' },
  'vm-sweep': { type: 'string', default: '1m' },
  'vm-concurrency': { type: 'string', default: '8' },
  insecure: { type: 'string', default: 'false' },
  vcenters: { type: 'string' },
  'vsphere-timeout': { type: 'string', default: '30s' },
  'vsphere-concurrency': { type: 'string', default: '3' },
  'vsphere-datacenter': { type: 'string' },
  'vsphere-folder': { type: 'string', default: 'vm-operator' },
  'vsphere-cluster': { type: 'string' },
  'vsphere-resource-pool': { type: 'string' },
  'vsphere-datastore': { type: 'string' },
  'vsphere-storage-policy': { type: 'string' },
  'vsphere-template-folder': { type: 'string' },
  'vsphere-allow-vm-as-template': { type: 'string', default: 'false' },
  'vmgroup-sweep': { type: 'string', default: '1m' },
  'image-namespaces': { type: 'string' },
  'image-prune-after': { type: 'string', default: '720h' },
  'image-stalled-after': { type: 'string', default: '10m' },
  'image-sync-concurrency': { type: 'string', default: '10' },
  'image-sync-max-backoff': { type: 'string', default: '1h' },
  'image-sync-timeout': { type: 'string', default: '12h' },
  'image-sync-attempt-timeout': { type: 'string', default: '1h' },
  'image-sync-restarts': { type: 'string', default: '3' },
  'kubevirt-concurrency': { type: 'string', default: '8' },
} as const;

export type Flag = keyof typeof OPTIONS;
export type Flags = { readonly [F in Flag]?: string };

/** @throws SettingsError */
export function parseFlags(args: readonly string[]): Flags {
  try {
    return parseArgs({ args: args.map(normalize), options: OPTIONS }).values;
  } catch (error) {
    throw new SettingsError(error instanceof Error ? error.message : String(error));
  }
}

/** Boolean flags: without a value they are true. */
const SWITCHES: ReadonlySet<string> = new Set([
  'leader-elect',
  'insecure',
  'enable-leader-election',
  'vsphere-allow-vm-as-template',
]);

/** Accepts flags as Go programs do: with one dash, and switches without a value. */
function normalize(arg: string): string {
  const [, name, rest = ''] = /^--?([a-z][a-z-]+)(=.*)?$/.exec(arg) ?? [];
  if (name === undefined) return arg;
  return `--${name}${rest === '' && SWITCHES.has(name) ? '=true' : rest}`;
}
