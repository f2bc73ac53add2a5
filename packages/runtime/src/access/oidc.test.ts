import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { worldWithClock } from '../../test/kubeconfig.ts';
import type { Credentials } from './credentials.ts';
import { oidcToken } from './oidc.ts';

/** Identity provider that rotates its refresh token and accepts only the newest. */
class IdentityProvider implements AsyncDisposable {
  readonly #server = createServer();
  readonly requests: URLSearchParams[] = [];
  refreshToken = 'refresh-0';
  expiresAt = 0;
  /** If set, the body of every response. */
  broken: string | undefined;
  /** If set, the status of every response of the token endpoint. */
  tokenStatus: number | undefined;

  async start(): Promise<this> {
    this.#server.on('request', async (request, response) => {
      if (this.broken !== undefined) return void response.end(this.broken);
      if (request.url === '/realm/.well-known/openid-configuration')
        return void response.end(JSON.stringify({ token_endpoint: `${this.origin}/realm/token?x=1` }));
      const body = (await request.setEncoding('utf8').toArray()).join('');
      const form = new URLSearchParams(body);
      this.requests.push(form);
      if (this.tokenStatus !== undefined) return void response.writeHead(this.tokenStatus).end('s3cret');
      if (request.url !== '/realm/token?x=1' || form.get('refresh_token') !== this.refreshToken)
        return void response.writeHead(400).end('{"error": "invalid_grant"}');
      this.refreshToken = `refresh-${this.requests.length}`;
      const id_token = jwt(`id-${this.requests.length}`, this.expiresAt);
      response.end(JSON.stringify({ id_token, refresh_token: this.refreshToken }));
    });
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get origin(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return `http://127.0.0.1:${address.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function jwt(sub: string, expiresAt: number): string {
  const claims = Buffer.from(JSON.stringify({ sub, exp: expiresAt / 1000 })).toString('base64url');
  return `e30.${claims}.c2ln`;
}

async function subjectOf(credentials: Credentials): Promise<unknown> {
  const header = (await credentials.authorization()) ?? '';
  return JSON.parse(Buffer.from(header.split('.')[1] ?? '', 'base64url').toString()).sub;
}

function settings(provider: IdentityProvider, more: object = {}) {
  return {
    'idp-issuer-url': `${provider.origin}/realm/`,
    'refresh-token': 'refresh-0',
    'client-id': 'kubectl',
    'client-secret': 'hush',
    ...more,
  };
}

describe('OIDC tokens', () => {
  test('an OIDC token is used until shortly before it expires, then renewed', async () => {
    await using provider = await new IdentityProvider().start();
    const world = worldWithClock();
    provider.expiresAt = world.now() + 1_200_000;
    const config = settings(provider, { 'id-token': jwt('id-0', world.now() + 600_000) });
    const credentials = oidcToken({ world, config, path: 'config' });
    expect(await subjectOf(credentials)).toBe('id-0');
    world.pass(569_000);
    expect(await subjectOf(credentials)).toBe('id-0');
    expect(provider.requests).toEqual([]);

    world.pass(1_000);
    expect(await Promise.all([subjectOf(credentials), subjectOf(credentials)])).toEqual(['id-1', 'id-1']);
    expect(provider.requests.map((form) => Object.fromEntries(form))).toEqual([
      {
        grant_type: 'refresh_token',
        refresh_token: 'refresh-0',
        client_id: 'kubectl',
        client_secret: 'hush',
      },
    ]);
  });

  test('several rejections of the same OIDC token cause only one renewal, which uses the newest refresh token', async () => {
    await using provider = await new IdentityProvider().start();
    const world = worldWithClock();
    provider.expiresAt = world.now() + 600_000;
    const credentials = oidcToken({ world, config: settings(provider), path: 'config' });
    expect(await subjectOf(credentials)).toBe('id-1');
    const rejected = await credentials.authorization();
    expect(await Promise.all([credentials.renew(rejected), credentials.renew(rejected)])).toEqual([
      true,
      true,
    ]);
    // A rejection that arrives later finds the token renewed already.
    expect(await credentials.renew(rejected)).toBe(true);
    expect(await subjectOf(credentials)).toBe('id-2');
    expect(provider.requests).toHaveLength(2);
  });

  test('an OIDC token stays in use when it cannot be renewed, and renew() reports no change', async () => {
    await using provider = await new IdentityProvider().start();
    const world = worldWithClock();
    const config = settings(provider, {
      'id-token': jwt('id-0', world.now() + 60_000),
      'refresh-token': 'revoked',
    });
    const credentials = oidcToken({ world, config, path: 'config' });
    await credentials.authorization();
    world.pass(60_000);
    expect(await subjectOf(credentials)).toBe('id-0');
    expect(await credentials.renew(await credentials.authorization())).toBe(false);
  });

  test('an expired token without a refresh token causes an error that asks for a new login', async () => {
    const config = { 'id-token': jwt('old', 1_000) };
    const withIssuer = { ...config, 'idp-issuer-url': 'https://idp.example' };
    await expect(
      oidcToken({ world: worldWithClock(), config: withIssuer, path: 'config' }).authorization(),
    ).rejects.toThrow('config: the OIDC token has expired and no refresh token is configured; log in again');
    const refreshable = { ...config, 'refresh-token': 'r' };
    await expect(
      oidcToken({ world: worldWithClock(), config: refreshable, path: 'config' }).authorization(),
    ).rejects.toThrow('config: the OIDC token has expired and no idp-issuer-url is configured');
  });

  test('errors of the identity provider are reported without quoting its response', async () => {
    await using provider = await new IdentityProvider().start();
    const world = worldWithClock();
    const issuer = `${provider.origin}/realm/`;
    const config = settings(provider);
    const authorize = (more: object = {}) =>
      oidcToken({ world, config: { ...config, ...more }, path: 'config' }).authorization();
    await expect(authorize({ 'refresh-token': 'revoked' })).rejects.toThrow(
      `${issuer} rejected the refresh token; log in again`,
    );
    for (const status of [404, 408, 429, 500, 503]) {
      provider.tokenStatus = status;
      await expect(authorize()).rejects.toThrow(
        new RegExp(`^cannot use the identity provider ${issuer}: it responds with HTTP ${status}$`),
      );
    }
    provider.broken = '<html>s3cret';
    await expect(authorize()).rejects.toThrow(
      new RegExp(`^the identity provider ${issuer} publishes no token_endpoint$`),
    );
    await expect(authorize({ 'idp-issuer-url': 'nowhere' })).rejects.toThrow('is not a URL');
    await provider[Symbol.asyncDispose]();
    await expect(authorize()).rejects.toThrow(/cannot use .*ECONNREFUSED/);
  });

  test('an OIDC token is not renewed over plain HTTP if the issuer is https and no CA is configured', async () => {
    await using provider = await new IdentityProvider().start(); // this server does not speak TLS
    const issuer = provider.origin.replace('http:', 'https:');
    const config = settings(provider, { 'idp-issuer-url': issuer });
    const renewed = oidcToken({ world: worldWithClock(), config, path: 'config' }).authorization();
    await expect(renewed).rejects.toThrow(/cannot use .*(SSL|TLS)/i);
  });
});
