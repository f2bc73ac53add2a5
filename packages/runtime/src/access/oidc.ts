import { messageOf, type TransportRequest, type World } from '@vmwright/core';
import { AccessError } from './access.ts';
import { type Credentials, type Expiring, refreshedToken } from './credentials.ts';

/** A token is renewed when it expires in less than this time. */
const EXPIRY_MARGIN_MS = 30_000;
/** Timeout of one request to the identity provider. */
const TIMEOUT_MS = 30_000;
const MAX_BYTES = 1 << 20;
/**
 * Statuses with which a provider rejects a refresh token, so that the user has to log in again. Other statuses, such as
 * 404, 429 or 503, may be an outage.
 */
const REJECTIONS: readonly number[] = [400, 401, 403];

export interface OidcOptions {
  readonly world: World;
  /** The `config` of a kubeconfig's auth provider. */
  readonly config: Readonly<Record<string, unknown>>;
  /** CA of the identity provider's certificate. @default the system's trust store */
  readonly ca?: (() => Promise<string>) | undefined;
  /** Path of the kubeconfig, for error messages. */
  readonly path: string;
}

/** OpenID Connect token from a kubeconfig, renewed with its refresh token. New tokens are not written to the file. */
export function oidcToken({ world, config, ca, path }: OidcOptions): Credentials {
  const setting = (name: string) => (typeof config[name] === 'string' ? config[name] : '');
  let idToken = setting('id-token');
  let refreshToken = setting('refresh-token');
  return refreshedToken(world, async (): Promise<Expiring<string>> => {
    if (idToken !== '' && expiryOf(idToken) - EXPIRY_MARGIN_MS > world.now()) {
      const value = idToken;
      idToken = ''; // used once: if a token is requested again, this one was rejected or has expired
      return { value, expiresAt: expiryOf(value) - EXPIRY_MARGIN_MS };
    }
    const issuer = setting('idp-issuer-url');
    if (issuer === '')
      throw new AccessError(
        `${path}: the OIDC token has expired and no idp-issuer-url is configured; set idp-issuer-url, or log in again`,
      );
    if (refreshToken === '')
      throw new AccessError(
        `${path}: the OIDC token has expired and no refresh token is configured; log in again`,
      );
    const provider = { world, ca, issuer };
    const { token_endpoint: endpoint } = await fetchJson(
      provider,
      `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    );
    if (typeof endpoint !== 'string')
      throw new AccessError(`the identity provider ${issuer} publishes no token_endpoint`);
    const response = await fetchJson(provider, endpoint, {
      grant_type: 'refresh_token',
      refresh_token: refreshToken,
      client_id: setting('client-id'),
      client_secret: setting('client-secret'),
    });
    const value = response.id_token;
    if (typeof value !== 'string')
      throw new AccessError(`${issuer} rejected the refresh token; log in again`);
    if (typeof response.refresh_token === 'string') refreshToken = response.refresh_token;
    return { value, expiresAt: expiryOf(value) - EXPIRY_MARGIN_MS };
  });
}

interface Provider extends Pick<OidcOptions, 'world' | 'ca'> {
  readonly issuer: string;
}

/**
 * Sends a GET or, if `form` is given, a POST. Returns the fields of the JSON response. Returns an empty object if the
 * body is not a JSON object, or if the provider rejects `form` (see `REJECTIONS`).
 * @throws AccessError if the provider cannot be reached or responds with any other status; the message does not quote
 *   the response, which may contain a token
 */
async function fetchJson(
  { world, ca, issuer }: Provider,
  address: string,
  form?: Record<string, string>,
): Promise<Readonly<Record<string, unknown>>> {
  if (!URL.canParse(address))
    throw new AccessError(`the identity provider's address ${address} is not a URL`);
  const { origin, pathname, search, protocol } = new URL(address);
  const tls = async () => (ca === undefined ? {} : { ca: await ca() });
  const transport = world.connect(protocol === 'https:' ? { origin, tls } : { origin });
  const timeout = new AbortController();
  const timer = world.after(TIMEOUT_MS, () =>
    timeout.abort(new Error(`no response within ${TIMEOUT_MS / 1000} s`)),
  );
  const path = pathname + search;
  const request: TransportRequest =
    form === undefined
      ? {
          method: 'GET',
          path,
          headers: { accept: 'application/json' },
          signal: timeout.signal,
          maxBytes: MAX_BYTES,
        }
      : {
          method: 'POST',
          path,
          headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams(form).toString(),
          signal: timeout.signal,
          maxBytes: MAX_BYTES,
        };
  try {
    const response = await transport.request(request);
    const { status } = response;
    const text = await response.text();
    if (status === 200) return parseFields(text);
    if (form !== undefined && REJECTIONS.includes(status)) return {};
    throw new Error(`it responds with HTTP ${status}`);
  } catch (error) {
    throw new AccessError(`cannot use the identity provider ${issuer}: ${messageOf(error)}`, {
      cause: error,
    });
  } finally {
    timer.cancel();
    await transport.close();
  }
}

function parseFields(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {};
  } catch {
    return {};
  }
}

/** Returns the expiry (`exp`) of a JSON web token in milliseconds since 1970; 0 if it has none. */
function expiryOf(token: string): number {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    return typeof claims.exp === 'number' ? claims.exp * 1000 : 0;
  } catch {
    return 0;
  }
}
