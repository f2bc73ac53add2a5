import { type ExecFileException, execFile } from 'node:child_process';
import { dirname, isAbsolute, join } from 'node:path';
import type { Clock, TlsOptions } from '@vmwright/core';
import { AccessError } from './access.ts';
import { type Credentials, type Expiring, RefreshedValue, renewRejected } from './credentials.ts';

type Identity = Pick<TlsOptions, 'certificate' | 'key'>;

interface ExecCredential {
  readonly token: string | undefined;
  readonly identity: Identity;
}

export interface ExecPluginOptions {
  readonly clock: Clock;
  /** The `exec` of a kubeconfig's user. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Path of the kubeconfig: for error messages, and to resolve a relative command. */
  readonly path: string;
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string;
}

/** Credentials without an expiry are used until the server rejects them. */
const NO_EXPIRY = Number.POSITIVE_INFINITY;

/** Time after which a plugin that is still running is killed, because it blocks every request. */
const TIMEOUT_MS = 60_000;

/**
 * Credentials from an exec plugin (client.authentication.k8s.io). The plugin runs again when they expire or the API
 * server rejects them.
 */
export class ExecPlugin implements Credentials {
  readonly #credential: RefreshedValue<ExecCredential>;

  constructor({ clock, spec, path }: ExecPluginOptions) {
    const program = parseSpec(spec, path);
    this.#credential = new RefreshedValue(clock, async () =>
      parseCredential(await run(clock, program), program.command),
    );
  }

  async authorization(): Promise<string | undefined> {
    return headerOf(await this.#credential.get());
  }

  async identity(): Promise<Identity> {
    return (await this.#credential.get()).identity;
  }

  async renew(rejected?: string): Promise<boolean> {
    return renewRejected(this.#credential, headerOf, rejected);
  }
}

function headerOf({ token }: ExecCredential): string | undefined {
  return token === undefined ? undefined : `Bearer ${token}`;
}

function parseSpec(spec: ExecPluginOptions['spec'], path: string): Program {
  const { command, args, env, apiVersion, installHint } = spec;
  if (typeof command !== 'string' || command === '')
    throw new AccessError(`${path}: the user's exec plugin has no command`);
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  const variables = Array.isArray(env) ? env.map((each) => [String(each?.name), String(each?.value)]) : [];
  return {
    // Like kubectl: a bare name is looked up in PATH, a path with a slash is relative to the kubeconfig.
    command: command.includes('/') && !isAbsolute(command) ? join(dirname(path), command) : command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: { ...Object.fromEntries(variables), KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    installHint: typeof installHint === 'string' ? installHint.trim() : '',
  };
}

/**
 * Runs the plugin and returns its stdout. Output and arguments may contain a secret, so errors do not quote them.
 * Node's error quotes them, so it is not attached as `cause`.
 */
function run(clock: Clock, { command, args, env, installHint }: Program): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { env: { ...process.env, ...env } }, (error, stdout) => {
      timer.cancel();
      if (error === null) resolve(stdout);
      else reject(new AccessError(`credential plugin ${command} ${describeFailure(error, installHint)}`));
    });
    const timer = clock.after(TIMEOUT_MS, () => {
      child.kill('SIGKILL');
      // A child process of the plugin may keep stdout or stderr open, which would delay the callback of `execFile`.
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
    child.stdin?.on('error', () => undefined); // the write fails if the plugin has exited already
    child.stdin?.end(); // a plugin that prompts gets end-of-file instead of waiting
  });
}

function describeFailure({ code, signal, killed }: ExecFileException, installHint: string): string {
  if (code === 'ENOENT') return `was not found; ${installHint || 'install it or give its full path'}`;
  if (code === 'EACCES') return 'is not executable; check its file permissions';
  if (killed || signal) return `was killed by ${signal ?? 'a signal'}; run it by hand to see why`;
  return `failed with exit code ${code}; run it by hand to see why`;
}

/** Parses the plugin's output. Errors do not quote it: it may contain a secret. */
function parseCredential(stdout: string, command: string): Expiring<ExecCredential> {
  const status = parseStatus(stdout);
  const text = (name: string) => (typeof status?.[name] === 'string' ? status[name] : undefined);
  const [token, certificate, key] = [text('token'), text('clientCertificateData'), text('clientKeyData')];
  if (token === undefined && (certificate === undefined || key === undefined)) {
    throw new AccessError(
      `credential plugin ${command} printed neither a token nor a certificate with its key; run it by hand to see why`,
    );
  }
  const expiry = Date.parse(text('expirationTimestamp') ?? '');
  return {
    value: { token, identity: certificate === undefined || key === undefined ? {} : { certificate, key } },
    expiresAt: Number.isNaN(expiry) ? NO_EXPIRY : expiry,
  };
}

function parseStatus(stdout: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(stdout)?.status ?? undefined;
  } catch {
    return undefined;
  }
}
