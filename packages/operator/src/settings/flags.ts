import { Command, CommanderError, Option } from 'commander';
import { didYouMean } from './did-you-mean.ts';
import { SettingsError } from './values.ts';

/** All flags and their defaults. `table.ts` describes them. */
export const OPTIONS = {
  config: { type: 'string' },
  namespace: { type: 'string' },
  namespaces: { type: 'string' },
  'cluster-id': { type: 'string' },
  controllers: { type: 'string', default: '*' },
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
  'log-format': { type: 'string' },
  'cloud-url': { type: 'string' },
  'cloud-api-key-file': { type: 'string' },
  'cloud-ca': { type: 'string' },
  'cloud-timeout': { type: 'string', default: '10s' },
  'vm-refresh': { type: 'string', default: '15s' },
  'vm-unknown-after': { type: 'string', default: '25s' },
  'vm-sweep': { type: 'string', default: '1m' },
  'vm-concurrency': { type: 'string', default: '8' },
  'vc-host': { type: 'string' },
  'vc-credentials': { type: 'string' },
  'vc-ca': { type: 'string' },
  'vc-thumbprint': { type: 'string' },
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
  'image-creation-namespaces': { type: 'string' },
  'image-prune-after': { type: 'string', default: '720h' },
  'image-stalled-after': { type: 'string', default: '10m' },
  'image-sync-concurrency': { type: 'string', default: '10' },
  'image-sync-max-backoff': { type: 'string', default: '1h' },
  'image-sync-timeout': { type: 'string', default: '12h' },
  'image-sync-attempt-timeout': { type: 'string', default: '1h' },
  'image-sync-restarts': { type: 'string', default: '3' },
  'kubevirt-concurrency': { type: 'string', default: '8' },
  'gpu-source': { type: 'string', default: 'real' },
  'gpu-seed': { type: 'string', default: '1' },
  'gpu-horizon': { type: 'string', default: '8760h' },
  'gpu-calendar': { type: 'string' },
  'gpu-maintenance-attribute': { type: 'string', default: 'vmwright.dev/maintenance-start' },
} as const;

export type Flag = keyof typeof OPTIONS;
/** Flags that are given on the command line, without defaults. */
export type Flags = { readonly [F in Flag]?: string };

/** Boolean flags: without a value they are true. */
const SWITCHES: ReadonlySet<string> = new Set([
  'leader-elect',
  'insecure',
  'enable-leader-election',
  'vsphere-allow-vm-as-template',
]);

export function isFlag(name: string): name is Flag {
  return Object.hasOwn(OPTIONS, name);
}

/** Returns the default of a flag; empty if it has none. */
export function defaultOf(flag: Flag): string {
  const option = OPTIONS[flag];
  return 'default' in option ? option.default : '';
}

/** Returns an option of the command-line library for a flag. */
export function optionOf(flag: Flag, description = ''): Option {
  const placeholder = SWITCHES.has(flag) ? '[true|false]' : '<value>';
  return new Option(`--${flag} ${placeholder}`, description);
}

/** Returns the flags among the options that a command was called with. */
export function flagsOf(command: Command): Flags {
  const given: { [F in Flag]?: string } = {};
  for (const option of command.options) {
    const name = option.long?.slice(2) ?? '';
    const value: unknown = command.getOptionValue(option.attributeName());
    if (isFlag(name) && typeof value === 'string') given[name] = value;
  }
  return given;
}

/** @throws SettingsError */
export function parseFlags(args: readonly string[]): Flags {
  const command = new Command('run').exitOverride().configureOutput({ writeErr: () => undefined });
  for (const flag of Object.keys(OPTIONS)) if (isFlag(flag)) command.addOption(optionOf(flag));
  try {
    command.parse(args.map(normalize), { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) throw new SettingsError(sentenceOf(error, Object.keys(OPTIONS)));
    throw error;
  }
  return flagsOf(command);
}

/**
 * Returns the message of an error of the command-line library as one sentence. Omits the value of an unknown flag,
 * because the value may be a password.
 * @param known names of all flags, for a suggestion
 */
export function sentenceOf({ code, message }: CommanderError, known: readonly string[]): string {
  if (code !== 'commander.unknownOption') return message.replace(/^error: /, '').replaceAll('\n', ' ');
  const [, flag = ''] = /'(-+[^'=]*)/.exec(message) ?? [];
  const flags = known.map((name) => `--${name}`);
  return `unknown option ${flag}${didYouMean(flag, flags)}`;
}

/**
 * Converts a flag from the notation of Go to that of the command-line library: adds the second dash, and `=true` to a
 * switch without a value.
 */
export function normalize(arg: string): string {
  const [, name = '', rest = ''] = /^--?([a-z][a-z-]+)(=.*)?$/s.exec(arg) ?? [];
  if (!isFlag(name) && name !== 'kubeconfig') return arg;
  return `--${name}${rest === '' && SWITCHES.has(name) ? '=true' : rest}`;
}
