import { parseArgs } from 'node:util';
import { isLevel, LEVELS, messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { type Address, readConfigFile, type Settings } from './settings.ts';

export const HELP = `vmwright-cloud serve [options]

Runs a private cloud: a REST API for virtual machines, described by its OpenAPI document at /openapi.json.

Options (defaults in parentheses):
  --listen host:port   address to listen on; port 0 chooses a free port (127.0.0.1:8480)
  --data file          SQLite database file                             (vmwright-cloud.sqlite)
  --keys file          API keys, one per line, besides CLOUD_API_KEYS   (none)
  --prohibited file    prohibited server names, one rule per line       (none)
  --driver name        driver that runs the machines: simulated or qemu (simulated)
  --config file        JSON file with driver settings and intervals     (built-in defaults)
  --tls-cert file      certificate (PEM); enables HTTPS, needs --tls-key
  --tls-key file       private key (PEM) of the certificate
  --log-level level    ${LEVELS.join(', ').padEnd(40)}         (info)
  --enable-faults      enable fault injection through /faults; for tests only
  --help               show this help

The environment variable CLOUD_API_KEYS can contain API keys, separated by commas. At least one API key is required.
The audit log is written to standard output, the server log to standard error. On SIGHUP, the server reads the files
with API keys, prohibited names and the TLS certificate again. On SIGTERM, the server finishes pending requests and
exits. Machines keep running after the exit.
`;

const OPTIONS = {
  listen: { type: 'string', default: '127.0.0.1:8480' },
  data: { type: 'string', default: 'vmwright-cloud.sqlite' },
  keys: { type: 'string' },
  prohibited: { type: 'string' },
  driver: { type: 'string', default: 'simulated' },
  config: { type: 'string' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'log-level': { type: 'string', default: 'info' },
  'enable-faults': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/**
 * Parses the command line and the environment, and reads the config file. Returns undefined for `--help`.
 * @throws StartError
 */
export function parseSettings(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Settings | undefined {
  const { values, positionals } = parseFlags(args);
  if (values.help) return undefined;
  const [command, ...more] = positionals;
  if (command !== 'serve' || more.length > 0)
    throw usageError(
      command === undefined ? 'missing command' : `unknown command "${[command, ...more].join(' ')}"`,
    );
  const { driver, 'log-level': logLevel, 'tls-cert': certificateFile, 'tls-key': keyFile } = values;
  if (driver !== 'simulated' && driver !== 'qemu')
    throw usageError(`--driver must be simulated or qemu, not "${driver}"`);
  if (!isLevel(logLevel))
    throw usageError(`--log-level must be one of ${LEVELS.join(', ')}, not "${logLevel}"`);
  if (values.data === '' || values.data === ':memory:')
    throw usageError(`--data must be a persistent file, not "${values.data}"`);
  if ((certificateFile === undefined) !== (keyFile === undefined))
    throw usageError('--tls-cert and --tls-key must be set together');
  return {
    ...readConfigFile(values.config, values.data),
    listen: parseAddress(values.listen),
    data: values.data,
    keysFile: values.keys,
    keys: env.CLOUD_API_KEYS,
    prohibitedFile: values.prohibited,
    driver,
    tls: certificateFile === undefined || keyFile === undefined ? undefined : { certificateFile, keyFile },
    logLevel,
    enableFaults: values['enable-faults'],
  };
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // Keeps only the first sentence of Node's message. The rest is advice about arguments that start with a dash.
    throw usageError(messageOf(error).split('. ', 1)[0] ?? '');
  }
}

function parseAddress(text: string): Address {
  const [, host, digits] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host === undefined || !(port <= 65_535)) throw usageError(`--listen must be host:port, not "${text}"`);
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port };
}

function usageError(message: string): StartError {
  return new StartError('SETTINGS', `${message}; see vmwright-cloud --help`);
}
