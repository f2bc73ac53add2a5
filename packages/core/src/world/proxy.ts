import { BlockList, isIP } from 'node:net';

/** HTTP proxy through which a server is reached. */
export interface HttpProxy {
  readonly protocol: 'http:' | 'https:';
  /** DNS name or IP address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Value of the `Proxy-Authorization` header, if the proxy's URL has a user. Secret: never log it. */
  readonly authorization: string | undefined;
}

/** Thrown when the configured proxy is not supported, cannot be reached, or rejects a connection. */
export class ProxyError extends Error {
  readonly code = 'PROXY';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ProxyError';
  }
}

/** Environment variables that select a proxy. As in Go, upper-case names take precedence over lower-case names. */
export type ProxyEnv = Readonly<Record<string, string | undefined>>;

/**
 * Parses a proxy URL: `http://user:password@host:port`, `https://…`, or `host:port`.
 * @param setting name of the setting, for error messages; these never quote `text`, which may contain a password
 * @throws ProxyError
 */
export function proxyFrom(text: string, setting: string): HttpProxy {
  const url = urlIn(text.includes('://') ? text : `http://${text}`);
  if (url === undefined)
    throw new ProxyError(`${setting} does not name a proxy: it must be a URL with a host`);
  const { protocol, hostname, username, password } = url;
  if (protocol === 'socks5:' || protocol === 'socks5h:')
    throw new ProxyError(
      `${setting} names a SOCKS proxy, which is not supported; use an http:// or https:// proxy`,
    );
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new ProxyError(`${setting} names a proxy of type ${protocol}//; use an http:// or https:// proxy`);
  const user = `${decoded(username)}:${decoded(password)}`;
  return {
    protocol,
    host: withoutBrackets(hostname),
    port: Number(url.port || (protocol === 'https:' ? 443 : 80)),
    authorization: username === '' ? undefined : `Basic ${Buffer.from(user).toString('base64')}`,
  };
}

function urlIn(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.host === '' ? undefined : url;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an unescaped percent sign
  }
}

/**
 * Returns the proxy that the environment selects for a server, by the same rules as Go programs
 * (golang.org/x/net/http/httpproxy): `HTTPS_PROXY` for an https server, otherwise `HTTP_PROXY`. Returns
 * undefined for loopback servers and for servers that `NO_PROXY` excludes.
 * @throws ProxyError
 */
export function proxyFor(origin: string, env: ProxyEnv): HttpProxy | undefined {
  const { protocol, hostname, port } = new URL(origin);
  const setting = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const text = setIn(env, setting);
  if (text === undefined) return undefined;
  const host = withoutBrackets(hostname).toLowerCase();
  const isExcluded = exclusionsIn(setIn(env, 'NO_PROXY') ?? '');
  if (isLoopback(host) || isExcluded(host, port || (protocol === 'https:' ? '443' : '80'))) return undefined;
  return proxyFrom(text, setting);
}

function setIn(env: ProxyEnv, name: string): string | undefined {
  return env[name] || env[name.toLowerCase()] || undefined;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && LOOPBACK.check(host, family(host)));
}

type Excludes = (host: string, port: string) => boolean;

/**
 * Parses `NO_PROXY`: addresses, CIDR blocks, names with their subdomains, `.suffix` for subdomains only, `*` for all.
 */
function exclusionsIn(list: string): Excludes {
  const entries = list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '');
  if (entries.includes('*')) return () => true;
  const rules = entries.flatMap((entry) => exclusionIn(entry) ?? []);
  return (host, port) => rules.some((excludes) => excludes(host, port));
}

function exclusionIn(entry: string): Excludes | undefined {
  const [, network = '', length = ''] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? [];
  const bits = isIP(network) === 4 ? 32 : 128;
  if (isIP(network) !== 0 && Number(length) <= bits) {
    const block = new BlockList();
    block.addSubnet(network, Number(length), family(network));
    return (host) => isIP(host) !== 0 && block.check(host, family(host));
  }
  // The colons of a bare IPv6 address do not separate a port.
  const [, name = '', onlyPort] =
    isIP(entry) === 6 ? [entry, entry] : (/^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(entry) ?? []);
  const host = withoutBrackets(name);
  if (host === '') return undefined;
  const isPort = (port: string) => onlyPort === undefined || onlyPort === port;
  if (isIP(host) !== 0) {
    const block = new BlockList();
    block.addAddress(host, family(host));
    return (each, port) => isIP(each) !== 0 && block.check(each, family(each)) && isPort(port);
  }
  const domain = host.startsWith('*.') ? host.slice(1) : host;
  const suffix = domain.startsWith('.') ? domain : `.${domain}`;
  return (each, port) => (each.endsWith(suffix) || each === domain) && isPort(port);
}

function family(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');
