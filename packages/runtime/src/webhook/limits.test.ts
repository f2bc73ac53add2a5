import { once } from 'node:events';
import { request } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import { collectingLogger, Registry } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { describe, expect, test } from 'vitest';
import { ConfigMap } from '../../test/kinds.ts';
import { defineRope, ropeRules } from '../../test/rope.ts';
import { RuntimeMetrics } from '../metrics/runtime-metrics.ts';
import { CertificateAuthority, type Issued } from '../pki/certificate.ts';
import { admission } from './admission.ts';
import { conversion } from './conversion.ts';
import { endpointsOf } from './endpoints.ts';
import { WebhookServer, type WebhookServerOptions } from './server.ts';
import { allow } from './verdict.ts';

const validity = { notBefore: new Date('2020-01-01'), notAfter: new Date('2120-01-01') };
const authority = CertificateAuthority.create({ commonName: 'servers' }, validity);
const certificate = authority.issue({
  ...validity,
  subject: { commonName: 'x' },
  usage: ['server'],
  names: ['127.0.0.1'],
});
const clients = CertificateAuthority.create({ commonName: 'clients' }, validity);
const PATH = '/validate--v1-configmap';
const MIB = 1024 * 1024;

const Rope = defineRope('limits.vmwright.dev');
const ropes = conversion(Rope, ropeRules);

async function start(options: Partial<WebhookServerOptions> = {}) {
  const { logger } = collectingLogger();
  const clock = new VirtualClock();
  const metrics = new RuntimeMetrics(new Registry());
  const validated: string[] = [];
  const rules = {
    validate: ({ metadata }: ConfigMap) => {
      validated.push(metadata.name);
      return allow();
    },
  };
  const server = await WebhookServer.start({
    clock,
    logger,
    endpoints: endpointsOf([admission(ConfigMap, rules), ropes], logger),
    metrics: (path) => metrics.webhook(path),
    certificate,
    port: 0,
    host: '127.0.0.1',
    ...options,
  });
  return { server, clock, validated, [Symbol.asyncDispose]: () => server.close() };
}

const REVIEW = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u1',
    operation: 'CREATE',
    name: 'x',
    namespace: 'y',
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'y' } },
    userInfo: { username: 'jane' },
  },
};

async function send(server: WebhookServer, client: Partial<Issued> = {}, path = PATH, body: object = REVIEW) {
  const sent = request({
    host: '127.0.0.1',
    port: server.port,
    path,
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json' },
    ca: authority.certificate,
    cert: client.certificate,
    key: client.key,
  });
  sent.end(JSON.stringify(body));
  const [response] = await once(sent, 'response');
  return { status: response.statusCode, text: (await response.setEncoding('utf8').toArray()).join('') };
}

/** Sends a request with only a part of its declared body. */
async function sendPartially(server: WebhookServer, declared: number, bytes: number): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: server.port, ca: authority.certificate });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  const head = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
  socket.write(`${head}content-length: ${declared}\r\n\r\n`);
  socket.write(Buffer.alloc(bytes, ' '));
  return socket;
}

/** Resolves when the socket is closed, with or without an error. */
function closed(socket: TLSSocket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}

describe('incomplete requests', () => {
  test('40 incomplete requests together use no more memory than the limit for all requests, and do not block a review', async () => {
    await using env = await start();
    const { server } = env;
    let maxHeld = 0;
    const sockets = await Promise.all(
      Array.from({ length: 40 }, () => sendPartially(server, 8 * MIB, 4 * MIB)),
    );
    // Together the requests send 160 MiB. Requests above the limit get 503, and the server closes their connections. A
    // client that is still sending may then lose the response.
    const statusLines = sockets.map(async (socket) => {
      const [data] = await once(socket, 'data');
      maxHeld = Math.max(maxHeld, server.heldBytes);
      return String(data).split('\r\n')[0];
    });
    const first = await Promise.any(statusLines);
    expect(first).toBe('HTTP/1.1 503 Service Unavailable');
    expect((await send(server)).status).toBe(200);
    expect(server.heldBytes).toBeLessThanOrEqual(64 * MIB);
    // After the body timeout the remaining connections are closed too, and all memory is released.
    const ended = Promise.all(sockets.map(closed));
    await expect
      .poll(() => {
        env.clock.advance(10_000);
        return server.heldBytes;
      })
      .toBe(0);
    await Promise.allSettled(statusLines);
    await ended;
    expect(maxHeld).toBeLessThanOrEqual(64 * MIB);
    expect((await send(server)).status).toBe(200);
  });

  test('40 incomplete requests get 413 immediately if they declare a body over the limit', async () => {
    await using env = await start();
    const sockets = await Promise.all(
      Array.from({ length: 40 }, () => sendPartially(env.server, 512 * MIB, 1)),
    );
    for (const socket of sockets) expect(String((await once(socket, 'data'))[0])).toContain('413');
    expect(env.server.heldBytes).toBe(0);
  });
});

describe('required client certificates', () => {
  const rules = { ca: clients.certificate, names: ['apiserver'] };
  const issue = (commonName: string, usage: 'client' | 'server' = 'client', by = clients) =>
    by.issue({ ...validity, subject: { commonName }, usage: [usage] });

  test('the API server is accepted with its client certificate, even after the serving certificate was replaced', async () => {
    await using env = await start({ clients: rules });
    expect((await send(env.server, issue('apiserver'))).status).toBe(200);
    env.server.use(certificate);
    expect((await send(env.server, issue('apiserver'))).status).toBe(200);
    expect((await send(env.server)).status).toBe(401);
  });

  test.for([
    ['no certificate', undefined, 401, 'a client certificate of an accepted CA is required\n'],
    ['a certificate of another CA', issue('apiserver', 'client', authority), 401, 'is required'],
    ['a server certificate', issue('apiserver', 'server'), 401, 'is required'],
    [
      'a certificate with another name',
      issue('mallory'),
      403,
      'the name in the client certificate is not accepted\n',
    ],
  ] as const)('a client with %s is rejected and no handler is called', async ([, client, status, text]) => {
    await using env = await start({ clients: rules });
    const response = await send(env.server, client);
    expect(response.status).toBe(status);
    expect(response.text).toContain(text);
    expect(env.validated).toEqual([]);
  });

  test('every certificate of the CA is accepted if no names are configured', async () => {
    await using env = await start({ clients: { ca: clients.certificate } });
    expect((await send(env.server, issue('any-name'))).status).toBe(200);
  });

  test('a new client CA replaces the old one', async () => {
    await using env = await start({ clients: rules });
    const next = CertificateAuthority.create({ commonName: 'next' }, validity);
    env.server.useClientCa(next.certificate);
    expect((await send(env.server, issue('apiserver', 'client', next))).status).toBe(200);
    expect((await send(env.server, issue('apiserver'))).status).toBe(401);
  });

  test('conversions need no certificate, because the API server sends none with them', async () => {
    await using env = await start({ clients: rules });
    const review = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'ConversionReview',
      request: { uid: 'u1', desiredAPIVersion: 'limits.vmwright.dev/v1', objects: [] },
    };
    expect((await send(env.server, {}, '/convert', review)).status).toBe(200);
  });
});
