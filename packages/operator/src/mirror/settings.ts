import { readFileSync } from 'node:fs';
import { LEVELS, type Level } from '@vmwright/runtime';
import { didYouMean } from '../settings/did-you-mean.ts';
import { parseDuration } from '../settings/duration.ts';
import type { AddressSettings } from '../settings/endpoints.ts';
import { parseTracingSettings, type TracingSettings } from '../settings/tracing.ts';
import {
  type Environment,
  invalidSetting,
  parseAddress,
  parseInteger,
  parseList,
  parseTime,
  SettingsError,
  textOf,
} from '../settings/values.ts';
import { isRecord, readYamlFile, type YamlFile } from '../settings/yaml-file.ts';
import { DEFAULT_MAPPING, isVmState, type StatusMapping } from './mapping.ts';
import { type DatabaseSettings, type FenceMode, SSL_MODES, type SslMode } from './postgres/database.ts';
import { CONTROLLER, DATABASE, type MirrorSetting } from './settings-table.ts';

/** Validated settings of the program `ssvirt-vm-controller`. */
export interface MirrorSettings {
  readonly isEnabled: boolean;
  readonly workers: number;
  readonly baseMs: number;
  readonly maxMs: number;
  readonly resyncMs: number;
  readonly replicas: 'election' | 'sharding' | 'single';
  /** Time after which another replica takes over from a replica that does not respond. */
  readonly leaseMs: number;
  /** Namespace of the Leases. */
  readonly namespace: string;
  /** Watched namespaces. @default all */
  readonly namespaces: readonly string[] | undefined;
  readonly metrics: AddressSettings;
  readonly mapping: StatusMapping;
  readonly settlingMs: number;
  readonly statusEvents: boolean;
  readonly logLevel: Level;
  /** Settings of tracing; undefined if it is off. */
  readonly tracing: TracingSettings | undefined;
  readonly database: DatabaseSettings;
}

export const DEFAULT_CONFIG = '/etc/ssvirt/config.yaml';

type Section = 'controller' | 'database';
type Texts<K extends string> = Readonly<Record<K, Setting>>;

/** Text of a setting, and its name in messages: the environment variable, or the key in the config file. */
interface Setting {
  readonly name: string;
  readonly text: string;
}

/**
 * Reads the settings. An environment variable takes precedence over the config file, and the file over the default.
 * @param config path of the config file; undefined for the default path, where the file may be missing
 * @param command command that uses the settings; unlike `run`, `verify` uses the database even if the controller is
 *   disabled
 * @throws SettingsError
 */
export function mirrorSettings(
  config: string | undefined,
  environment: Environment,
  command: 'run' | 'verify' = 'run',
): MirrorSettings {
  const path = config ?? DEFAULT_CONFIG;
  const file = readConfig(path, config === undefined);
  const section = sectionOf(file, 'controller');
  const unknown = Object.keys(section).find(
    (key) => !Object.hasOwn(CONTROLLER, key) && key !== 'statusMapping',
  );
  if (unknown !== undefined)
    throw new SettingsError(
      `controller.${unknown} in ${path} is not a setting${didYouMean(unknown, Object.keys(CONTROLLER))}; the settings are ${Object.keys(CONTROLLER).join(', ')} and statusMapping`,
    );
  const texts = textsOf('controller', CONTROLLER, section, environment);
  const isSharded = parseSwitch(texts.sharding);
  const isElected = parseSwitch(texts.enableLeaderElection);
  const fence = oneOf(texts.fence, ['session', 'table']);
  if (fence === 'table' && !isElected && !isSharded)
    throw new SettingsError(
      `${texts.fence.name} is "table", which needs ${texts.enableLeaderElection.name} or sharding: without either, replicas would take the fence from each other`,
    );
  const [baseMs, maxMs] = [parseTime(...named(texts.baseDelay)), parseTime(...named(texts.maxDelay))];
  if (maxMs < baseMs)
    throw invalid(texts.maxDelay, `at least ${texts.baseDelay.name}, which is ${texts.baseDelay.text}`);
  const isEnabled = parseSwitch(texts.enabled);
  return {
    isEnabled,
    workers: parseInteger(...named(texts.maxConcurrentReconciles), 1, 100),
    baseMs,
    maxMs,
    resyncMs: parseTime(...named(texts.resyncPeriod)),
    replicas: isSharded ? 'sharding' : isElected ? 'election' : 'single',
    leaseMs: parseSeconds(texts.leaseDuration),
    namespace: texts.namespace.text,
    namespaces: parseList(texts.watchNamespaces.text),
    metrics: parseAddress(...named(texts.metricsAddr)),
    mapping: parseMapping(section.statusMapping, path),
    settlingMs: parseTime(...named(texts.settlingTime), 0),
    statusEvents: oneOf(texts.statusEvents, ['on', 'off']) === 'on',
    logLevel: oneOf(texts.logLevel, LEVELS),
    tracing: parseTracingSettings(environment),
    database: databaseSettings(path, file, environment, fence, isEnabled || command === 'verify'),
  };
}

function databaseSettings(
  path: string,
  file: YamlFile,
  environment: Environment,
  fence: FenceMode,
  isUsed: boolean,
): DatabaseSettings {
  const texts = databaseTexts(file, environment);
  parseInteger(...named(texts.maxConnections), 1, 10_000); // validated but not used: there is only one connection
  const url = parseDatabaseUrl(texts.url);
  const user = url?.user ?? texts.username.text;
  if (user === '' && isUsed)
    throw new SettingsError(`SSVIRT_DATABASE_USERNAME is not set; set it, or database.username in ${path}`);
  return {
    host: url?.host ?? texts.host.text,
    port: url?.port ?? parseInteger(...named(texts.port), 1, 65_535),
    user,
    database: url?.database ?? texts.database.text,
    sslMode: url?.sslMode ?? oneOf(texts.sslmode, SSL_MODES),
    caFile: (url?.caFile ?? texts.sslrootcert.text) || undefined,
    password: async () => readPassword(path, environment),
    fence,
  };
}

function databaseTexts(file: YamlFile, environment: Environment): Texts<keyof typeof DATABASE> {
  return textsOf('database', DATABASE, withAliases(sectionOf(file, 'database')), environment);
}

/** Reads the password again, because it may have been rotated in the config file or the password file. */
function readPassword(path: string, environment: Environment): string | undefined {
  const { url, password, passwordFile } = databaseTexts(readConfig(path, true), environment);
  const inUrl = parseDatabaseUrl(url)?.password;
  if (inUrl !== undefined) return inUrl;
  if (passwordFile.text === '') return password.text || undefined;
  try {
    return readFileSync(passwordFile.text, 'utf8').trimEnd();
  } catch (error) {
    throw new SettingsError(`the password file ${passwordFile.text} cannot be read`, { cause: error });
  }
}

interface UrlSettings {
  readonly host: string;
  readonly port: number;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  readonly sslMode: SslMode | undefined;
  readonly caFile: string | undefined;
}

/** Parses a URL such as `postgres://user:password@host:5432/ssvirt?sslmode=verify-full`. Errors never quote it. */
function parseDatabaseUrl({ name, text }: Setting): UrlSettings | undefined {
  if (text === '') return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === '' || !isDecodable(url))
    throw new SettingsError(`${name} must be a URL such as postgres://user:password@host:5432/ssvirt`);
  const sslMode = url.searchParams.get('sslmode');
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 5432 : Number(url.port),
    user: decodeURIComponent(url.username) || undefined,
    password: decodeURIComponent(url.password) || undefined,
    database: decodeURIComponent(url.pathname.slice(1)) || undefined,
    sslMode: sslMode === null ? undefined : oneOf({ name: `sslmode of ${name}`, text: sslMode }, SSL_MODES),
    caFile: url.searchParams.get('sslrootcert') ?? undefined,
  };
}

/** Returns whether all escape sequences of a URL are valid: a "%" in a password has to be written as "%25". */
function isDecodable({ username, password, pathname }: URL): boolean {
  try {
    decodeURIComponent(username + password + pathname);
    return true;
  } catch {
    return false;
  }
}

function readConfig(path: string, isOptional: boolean): YamlFile {
  return readYamlFile(path, 'sections such as "database:" and "controller:"', isOptional);
}

function sectionOf(file: YamlFile, section: Section): YamlFile {
  const value = file[section] || {}; // the parser returns an empty section as an empty text
  if (isRecord(value)) return value;
  throw new SettingsError(`"${section}:" in the config file must be a section with settings`);
}

/** Accepts names with underscores, such as max_connections, because the SSVirt API server uses the same section. */
function withAliases(section: YamlFile): YamlFile {
  return Object.fromEntries(
    Object.entries(section).map(([key, value]) => [
      key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );
}

function textsOf<K extends string>(
  section: Section,
  settings: Readonly<Record<K, MirrorSetting>>,
  values: Readonly<Record<string, unknown>>,
  environment: Environment,
): Texts<K> {
  const texts: Partial<Record<K, Setting>> = {};
  for (const key in settings) {
    const { variable, byDefault } = settings[key];
    const given = environment[variable];
    const value = values[key];
    texts[key] =
      given !== undefined && given !== ''
        ? { name: variable, text: given }
        : {
            name: `${section}.${key}`,
            text: textOf(`${section}.${key} in the config file`, value) ?? byDefault,
          };
  }
  return complete(texts, settings);
}

/** Checks that every key was set, which narrows the type. */
function complete<K extends string>(
  texts: Partial<Record<K, Setting>>,
  settings: Readonly<Record<K, unknown>>,
): Texts<K> {
  const isComplete = (each: Partial<Record<K, Setting>>): each is Record<K, Setting> =>
    Object.keys(settings).every((key) => Object.hasOwn(each, key));
  if (isComplete(texts)) return texts;
  throw new Error('a setting was left out');
}

function parseMapping(value: unknown, path: string): StatusMapping {
  if (value === undefined || value === null) return DEFAULT_MAPPING;
  if (!isRecord(value))
    throw new SettingsError(`controller.statusMapping in ${path} must be a map from states to statuses`);
  const mapping: Record<keyof StatusMapping, string> = { ...DEFAULT_MAPPING };
  for (const [state, status] of Object.entries(value)) {
    if (!isVmState(state))
      throw new SettingsError(
        `controller.statusMapping.${state} in ${path} is not a state of a VM; the states are ${Object.keys(mapping).join(', ')}`,
      );
    if (typeof status !== 'string' || status === '')
      throw new SettingsError(
        `controller.statusMapping.${state} in ${path} must be a text such as POWERED_ON`,
      );
    mapping[state] = status;
  }
  const clash = Object.entries(mapping).find(
    ([state, status]) => state !== 'Deleted' && status === mapping.Deleted,
  );
  if (clash !== undefined)
    throw new SettingsError(
      `controller.statusMapping.${clash[0]} in ${path} is "${clash[1]}", which is the status of VMs that do not exist; choose another text`,
    );
  return mapping;
}

function parseSwitch(setting: Setting): boolean {
  return oneOf(setting, ['true', 'false']) === 'true';
}

function oneOf<const T extends string>(setting: Setting, values: readonly T[]): T {
  const found = values.find((value) => value === setting.text);
  if (found !== undefined) return found;
  throw invalid(setting, `one of ${values.join(', ')}`);
}

/** Accepts whole seconds only, because Leases store their duration in seconds. */
function parseSeconds(setting: Setting): number {
  const ms = parseDuration(setting.text);
  if (ms !== undefined && ms >= 2_000 && ms % 1_000 === 0) return ms;
  throw invalid(setting, 'whole seconds, at least 2s');
}

function invalid({ name, text }: Setting, wanted: string): SettingsError {
  return invalidSetting(name, text, wanted);
}

/** Returns the name and the text of a setting: the first two arguments of the parsers in `settings/values.ts`. */
function named({ name, text }: Setting): [name: string, text: string] {
  return [name, text];
}
