import { type ExecFileException, execFile } from 'node:child_process';
import { dirname, isAbsolute, join } from 'node:path';
import type { Clock, TlsOptions } from '@vmwright/core';
import { AccessError } from './access.ts';
import { type Credentials, RefreshedValue, type Expiring, renewRejected } from './credentials.ts';

type Identity = Pick<TlsOptions, 'certificate' | 'key'>;

interface ExecCredential {
  readonly token: string | undefined;
  readonly identity: Identity;
}

export interface ExecPluginOptions {
  readonly clock: Clock;
  /** The `exec` of a kubeconfig's user. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** The kubeconfig, for messages and as that to which a relative command is relative. */
  readonly path: string;
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string;
}

/** Without an expiry the credentials are good until they are refused. */
const NO_EXPIRY = Number.POSITIVE_INFINITY;

/** One that hangs would hold up every request for good. */
const TIMEOUT_MS = 60_000;

/** Credentials from a program (client.authentication.k8s.io), run again when they expire or are refused. */
export class ExecPlugin implements Credentials {
  readonly #credential: RefreshedValue<ExecCredential>;

  constructor({ clock, spec, path }: ExecPluginOptions) {
    const program = parseSpec(spec, path);
    this.#credential = new RefreshedValue(clock, async () => parseCredential(await run(clock, program), program.command));
  }

  async authorization(): Promise<string | undefined> {
    return headerOf(await this.#credential.get());
  }

  async identity(): Promise<Identity> {
    return (await this.#credential.get()).identity;
  }

  async renew(refused?: string): Promise<boolean> {
    return renewRejected(this.#credential, headerOf, refused);
  }
}

function headerOf({ token }: ExecCredential): string | undefined {
  return token === undefined ? undefined : `Bearer ${token}`;
}

function parseSpec(spec: ExecPluginOptions['spec'], path: string): Program {
  const { command, args, env, apiVersion, installHint } = spec;
  if (typeof command !== 'string' || command === '')
    throw new AccessError(`${path}: the user's exec plugin names no command`);
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  const variables = Array.isArray(env) ? env.map((each) => [String(each?.name), String(each?.value)]) : [];
  return {
    // As kubectl has it: a bare name is looked up in PATH, anything with a slash is beside the kubeconfig.
    command: command.includes('/') && !isAbsolute(command) ? join(dirname(path), command) : command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: { ...Object.fromEntries(variables), KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    installHint: typeof installHint === 'string' ? installHint.trim() : '',
  };
}

/**
 * What it printed, on either stream, and its arguments may hold a secret: no error quotes them, nor has as its cause
 * the error of Node, which does.
 */
function run(clock: Clock, { command, args, env, installHint }: Program): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { env: { ...process.env, ...env } }, (error, stdout) => {
      timer.cancel();
      if (error === null) resolve(stdout);
      else reject(new AccessError(`the credential plugin ${command} ${describeFailure(error, installHint)}`));
    });
    const timer = clock.after(TIMEOUT_MS, () => {
      child.kill('SIGKILL');
      // What it has started itself may hold these open, and would be waited for.
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
    child.stdin?.on('error', () => undefined); // it may be gone already
    child.stdin?.end(); // nobody is there to answer a question
  });
}

function describeFailure({ code, signal, killed }: ExecFileException, installHint: string): string {
  if (code === 'ENOENT') return `is not there; ${installHint || 'install it, or give its full path'}`;
  if (code === 'EACCES') return 'may not be executed';
  if (killed || signal) return `was ended by ${signal ?? 'a signal'}; run it by hand to see why`;
  return `failed with exit code ${code}; run it by hand to see why`;
}

/** What it printed may hold a secret, so no message quotes it. */
function parseCredential(printed: string, command: string): Expiring<ExecCredential> {
  const status = parseStatus(printed);
  const text = (name: string) => (typeof status?.[name] === 'string' ? status[name] : undefined);
  const [token, certificate, key] = [text('token'), text('clientCertificateData'), text('clientKeyData')];
  if (token === undefined && (certificate === undefined || key === undefined)) {
    throw new AccessError(
      `the credential plugin ${command} has printed neither a token nor a certificate with its key`,
    );
  }
  const expiry = Date.parse(text('expirationTimestamp') ?? '');
  return {
    value: { token, identity: certificate === undefined || key === undefined ? {} : { certificate, key } },
    expiresAt: Number.isNaN(expiry) ? NO_EXPIRY : expiry,
  };
}

function parseStatus(printed: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(printed)?.status ?? undefined;
  } catch {
    return undefined;
  }
}
