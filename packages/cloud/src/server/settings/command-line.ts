import { parseArgs } from 'node:util';
import { isLevel, LEVELS, messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { type Address, fileSettings, type Settings } from './settings.ts';

export const HELP = `vmwright-cloud serve [options]

A private cloud: a REST API for virtual machines. Its own description is served at /openapi.json.

  --listen host:port   where to serve; port 0 for any that is free      (127.0.0.1:8480)
  --data file          where the servers are kept, a SQLite file        (vmwright-cloud.sqlite)
  --keys file          the API keys, one a line                         (or CLOUD_API_KEYS, divided by commas)
  --prohibited file    names that no server may have, a rule a line     (none)
  --driver name        what runs the machines: simulated or qemu        (simulated)
  --config file        JSON with the details of drivers and times       (defaults)
  --tls-cert file      serve HTTPS with this certificate (PEM) …
  --tls-key file       … and its key
  --log-level level    ${LEVELS.join(', ').padEnd(40)}         (info)
  --enable-faults      let requests to /faults make the API misbehave: for tests only
  --help               this page

The audit log goes to standard output, everything else to standard error. SIGHUP reads keys, prohibited names and
certificate again; SIGTERM answers what is under way and ends. Machines outlive the cloud's process.
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
 * What a command line asks for; undefined for the help page.
 * @throws StartError for what makes no sense
 */
export function settingsFrom(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Settings | undefined {
  const { values, positionals } = parsed(args);
  if (values.help) return undefined;
  const [command, ...more] = positionals;
  if (command !== 'serve' || more.length > 0)
    throw wrong(
      command === undefined ? 'say what to do' : `"${[command, ...more].join(' ')}" is nothing to do`,
    );
  const { driver, 'log-level': logLevel, 'tls-cert': certificateFile, 'tls-key': keyFile } = values;
  if (driver !== 'simulated' && driver !== 'qemu')
    throw wrong(`--driver is simulated or qemu, not "${driver}"`);
  if (!isLevel(logLevel)) throw wrong(`--log-level is one of ${LEVELS.join(', ')}, not "${logLevel}"`);
  if (values.data === '' || values.data === ':memory:')
    throw wrong(`--data is a file, which outlives the process, not "${values.data}"`);
  if ((certificateFile === undefined) !== (keyFile === undefined))
    throw wrong('--tls-cert and --tls-key go together');
  return {
    ...fileSettings(values.config, values.data),
    listen: addressIn(values.listen),
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

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // Node goes on about arguments that begin with a dash.
    throw wrong(messageOf(error).split('. ', 1)[0] ?? '');
  }
}

function addressIn(text: string): Address {
  const [, host, digits] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host === undefined || !(port <= 65_535)) throw wrong(`--listen is host:port, not "${text}"`);
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port };
}

function wrong(what: string): StartError {
  return new StartError('SETTINGS', `${what}; see vmwright-cloud --help`);
}
