import { dirname, isAbsolute, join } from 'node:path';
import { messageOf, proxyFrom, type TlsOptions, type World } from '@vmwright/core';
import { type Access, AccessError } from './access.ts';
import { type Credentials, fixedToken, noCredentials } from './credentials.ts';
import { ExecPlugin } from './exec.ts';
import { rotatedFile, tokenFile } from './files.ts';
import { type Entry, type Fields, fieldsOf, KubeconfigFiles, nonEmptyString } from './kubeconfig-files.ts';
import { oidcToken } from './oidc.ts';

export interface KubeconfigOptions {
  readonly world: World;
  /** Path of the kubeconfig. @default the merged files of `$KUBECONFIG`; `~/.kube/config` if that is not set */
  readonly path?: string | undefined;
  /** Name of the context. @default the kubeconfig's current context */
  readonly context?: string | undefined;
  /** @default process.env */
  readonly env?: NodeJS.ProcessEnv;
}

/** Fields that are rejected: ignoring them would send requests with another identity than the file specifies. */
const UNSUPPORTED = ['as', 'as-uid', 'as-groups', 'as-user-extra', 'username', 'password'] as const;

/**
 * Access from a kubeconfig, with client certificate, token, token file, exec plugin or OIDC.
 *
 * Errors: this function throws an `AccessError` if the file is invalid. Requests throw an `AccessError` if something
 * fails that the file refers to, such as an exec plugin or a token file.
 */
export async function kubeconfigAccess(options: KubeconfigOptions): Promise<Access> {
  const { world, path, env = process.env } = options;
  const files = await KubeconfigFiles.load(path, env);
  const contextName = options.context ?? files.currentContext();
  const { fields: context, path: contextPath } = files.entry('contexts', contextName);
  const clusterName = nonEmptyString(context.cluster);
  if (clusterName === undefined)
    throw new AccessError(
      `context "${contextName}" in ${contextPath} has no cluster; set it with \`kubectl config set-context ${contextName} --cluster=<name>\``,
    );
  const cluster = files.entry('clusters', clusterName);
  const userName = nonEmptyString(context.user);
  const user = userName === undefined ? { ...cluster, fields: {} } : files.entry('users', userName);
  rejectUnsupported(user, UNSUPPORTED);

  const origin = originOf(cluster);
  const exec = fieldsOf(user.fields.exec);
  const plugin = exec && new ExecPlugin({ clock: world, spec: exec, path: user.path });
  return {
    server: {
      origin,
      ...(origin.startsWith('https:') && { tls: tlsOf(cluster, user, plugin) }),
      ...proxyOf(cluster),
    },
    credentials: plugin ?? credentialsOf(world, user),
    namespace: nonEmptyString(context.namespace) ?? 'default',
  };
}

function rejectUnsupported({ fields, path }: Entry, names: readonly string[]): void {
  const found = names.find((name) => fields[name] !== undefined && fields[name] !== '');
  if (found !== undefined)
    throw new AccessError(`${path}: the user's field "${found}" is not supported; choose another user`);
}

function originOf({ fields, path }: Entry): string {
  const server = nonEmptyString(fields.server);
  if (server === undefined) throw new AccessError(`${path}: the cluster has no server address`);
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw new AccessError(`${path}: the server address must begin with https:// or http://`);
  if (url.pathname !== '/')
    throw new AccessError(`${path}: a server address with a path (${url.pathname}) is not supported`);
  return url.origin;
}

/**
 * Returns the cluster's proxy. An invalid proxy is reported when the file is loaded, not at the first request.
 * @throws AccessError
 */
function proxyOf({ fields, path }: Entry): { readonly proxy?: string } {
  const proxy = nonEmptyString(fields['proxy-url']);
  if (proxy === undefined) return {};
  try {
    proxyFrom(proxy, '"proxy-url"');
  } catch (cause) {
    throw new AccessError(`${path}: ${messageOf(cause)}`, { cause });
  }
  return { proxy };
}

function tlsOf(cluster: Entry, user: Entry, plugin: ExecPlugin | undefined): () => Promise<TlsOptions> {
  const ca = pemSource(cluster, 'certificate-authority');
  const certificate = pemSource(user, 'client-certificate');
  const key = pemSource(user, 'client-key');
  return async () => {
    const identity =
      plugin === undefined
        ? { certificate: await certificate?.(), key: await key?.() }
        : await plugin.identity();
    return withoutUndefined({
      ca: await ca?.(),
      ...identity,
      serverName: nonEmptyString(cluster.fields['tls-server-name']),
      insecure: cluster.fields['insecure-skip-tls-verify'] === true ? true : undefined,
    });
  };
}

function credentialsOf(world: World, { fields, path }: Entry): Credentials {
  const file = nonEmptyString(fields.tokenFile);
  if (file !== undefined) return tokenFile(world, resolvePath(path, file));
  const token = nonEmptyString(fields.token);
  if (token !== undefined) return fixedToken(token);
  const provider = fieldsOf(fields['auth-provider']);
  if (provider === undefined) return noCredentials;
  if (provider.name !== 'oidc') {
    throw new AccessError(
      `${path}: the auth provider "${String(provider.name)}" is not supported; use an exec plugin`,
    );
  }
  const config: Fields = fieldsOf(provider.config) ?? {};
  const ca = pemSource({ fields: config, path }, 'idp-certificate-authority');
  return oidcToken({ world, config, ca, path });
}

/** Reads PEM data that is either inline (`name-data`, base64) or in a file (`name`) that may be rotated. */
function pemSource({ fields, path }: Entry, name: string): (() => Promise<string>) | undefined {
  const data = nonEmptyString(fields[`${name}-data`]);
  if (data !== undefined) {
    const pem = Buffer.from(data, 'base64').toString();
    return async () => pem;
  }
  const file = nonEmptyString(fields[name]);
  return file === undefined ? undefined : rotatedFile(resolvePath(path, file));
}

/** Resolves a path that a kubeconfig contains, relative to the directory of the kubeconfig. */
function resolvePath(path: string, file: string): string {
  return isAbsolute(file) ? file : join(dirname(path), file);
}

function withoutUndefined(
  options: { readonly [K in keyof TlsOptions]: TlsOptions[K] | undefined },
): TlsOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
