import { once } from 'node:events';
import { request } from 'node:https';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { collectingLogger, Registry } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { describe, expect, test } from 'vitest';
import { ConfigMap } from '../../test/kinds.ts';
import { RuntimeMetrics } from '../metrics/runtime-metrics.ts';
import { CertificateAuthority } from '../pki/certificate.ts';
import { type AdmissionRules, admission } from './admission.ts';
import { endpointsOf } from './endpoints.ts';
import { WebhookServer } from './server.ts';
import { allow } from './verdict.ts';

const validity = { notBefore: new Date('2020-01-01'), notAfter: new Date('2120-01-01') };
const authorities = ['one', 'two'].map((commonName) => CertificateAuthority.create({ commonName }, validity));
const [one, two] = authorities.map((authority) =>
  authority.issue({ ...validity, subject: { commonName: 'x' }, usage: ['server'], names: ['127.0.0.1'] }),
);
if (one === undefined || two === undefined) throw new Error('no certificates');
const ca = authorities.map(({ certificate }) => certificate);
const PATH = '/validate--v1-configmap';

async function start(rules: Partial<AdmissionRules<ConfigMap>> = {}) {
  const { logger, lines } = collectingLogger();
  const clock = new VirtualClock();
  const metrics = new RuntimeMetrics(new Registry());
  const endpoints = endpointsOf([admission(ConfigMap, { validate: () => allow(), ...rules })], logger);
  const server = await WebhookServer.start({
    clock,
    logger,
    endpoints,
    metrics: (path) => metrics.webhook(path),
    certificate: one ?? { certificate: '', key: '' },
    port: 0,
    host: '127.0.0.1',
  });
  return { server, clock, lines, [Symbol.asyncDispose]: () => server.close() };
}

const JSON_TYPE = { 'content-type': 'application/json' };

async function send(
  server: WebhookServer,
  body: unknown,
  { path = PATH, method = 'POST', headers = JSON_TYPE as Record<string, string> } = {},
) {
  const sent = request({ host: '127.0.0.1', port: server.port, path, method, headers, ca, agent: false });
  sent.on('error', () => undefined); // the server may stop reading the body
  sent.end(typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body));
  const [response] = await once(sent, 'response');
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return { status: response.statusCode, text };
}

function review(more: object = {}): object {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'y' } };
  const request = {
    uid: 'u1',
    operation: 'CREATE',
    name: 'x',
    namespace: 'y',
    object,
    userInfo: { username: 'jane' },
  };
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { ...request, ...more } };
}

test('the response to a review has the uid of the review', async () => {
  await using env = await start();
  const { status, text } = await send(env.server, review());
  expect(status).toBe(200);
  expect(JSON.parse(text)).toEqual({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: 'u1', allowed: true },
  });
});

describe('invalid reviews', () => {
  const invalid: [string, unknown, number, string][] = [
    ['malformed JSON', 'x{', 400, 'the body is not valid JSON\n'],
    ['an empty body', '', 400, 'the body is not valid JSON\n'],
    ['a number', 1, 400, 'the body must have kind AdmissionReview and apiVersion admission.k8s.io/v1\n'],
    [
      'an older version',
      { apiVersion: 'admission.k8s.io/v1beta1', kind: 'AdmissionReview' },
      400,
      'the body must have kind AdmissionReview',
    ],
    [
      'another kind',
      { apiVersion: 'admission.k8s.io/v1', kind: 'Pod' },
      400,
      'the body must have kind AdmissionReview',
    ],
    ['no request', { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }, 400, 'has no request\n'],
    ['no uid', review({ uid: undefined }), 400, 'has no request.uid\n'],
    [
      'an unsupported operation',
      review({ operation: 'CONNECT' }),
      400,
      'must be CREATE, UPDATE or DELETE, not CONNECT',
    ],
    [
      'no object',
      review({ object: null }),
      400,
      'request.object must be of kind ConfigMap (v1), but contains no object',
    ],
    [
      'another object',
      review({ object: { apiVersion: 'v1', kind: 'Pod', metadata: {} } }),
      400,
      'contains a Pod of v1',
    ],
    [
      'no old object',
      review({ operation: 'DELETE' }),
      400,
      'request.oldObject must be of kind ConfigMap (v1), but contains no object',
    ],
  ];
  test.for(invalid)('a review with %s is rejected with an explanation', async ([, body, status, message]) => {
    await using env = await start();
    const response = await send(env.server, body);
    expect(response.status).toBe(status);
    expect(response.text).toContain(message);
    expect((await send(env.server, review())).status).toBe(200);
  });

  test('a review with a wrong size, content type, method or path gets the matching status', async () => {
    await using env = await start();
    const { server } = env;
    expect(await send(server, Buffer.alloc(9 * 1024 * 1024, ' '))).toEqual({
      status: 413,
      text: 'the request body exceeds 8388608 bytes\n',
    });
    const chunked = { ...JSON_TYPE, 'transfer-encoding': 'chunked' };
    expect((await send(server, Buffer.alloc(9 * 1024 * 1024, ' '), { headers: chunked })).status).toBe(413);
    expect((await send(server, review(), { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
    expect((await send(server, '', { method: 'GET' })).status).toBe(405);
    expect((await send(server, review(), { path: '/validate--v1-pod' })).status).toBe(404);
    expect((await send(server, review())).status).toBe(200);
  });
});

test('a hanging handler times out shortly before the API server does', async () => {
  const started = Promise.withResolvers<AbortSignal>();
  await using env = await start({
    validate: (_, { signal }) => {
      started.resolve(signal);
      return new Promise(() => undefined);
    },
  });
  const { server, clock } = env;
  const pending = send(server, review(), { path: `${PATH}?timeout=10.5s` });
  const signal = await started.promise;
  clock.advance(9_900);
  expect(signal.aborted).toBe(false);
  clock.advance(100);
  expect(await pending).toEqual({ status: 500, text: `${PATH} timed out after 10.0 s\n` });
  expect(signal.aborted).toBe(true);
});

test('a requested timeout above 30 s, the maximum of the API server, counts as 30 s', async () => {
  const started = Promise.withResolvers<AbortSignal>();
  await using env = await start({
    validate: (_, { signal }) => {
      started.resolve(signal);
      return new Promise(() => undefined);
    },
  });
  const pending = send(env.server, review(), { path: `${PATH}?timeout=1000h` });
  const signal = await started.promise;
  env.clock.advance(28_400);
  expect(signal.aborted).toBe(false);
  env.clock.advance(100);
  expect((await pending).status).toBe(500);
});

test('if a handler throws, the request is denied without details, and the error is logged', async () => {
  await using env = await start({
    validate: () => {
      throw new Error('the password is hunter2');
    },
  });
  const { status, text } = await send(env.server, review());
  expect(status).toBe(200);
  expect(JSON.parse(text).response).toEqual({
    uid: 'u1',
    allowed: false,
    status: {
      status: 'Failure',
      code: 500,
      reason: 'InternalError',
      message: 'the admission of ConfigMap y/x failed; see the log of its webhook (request u1)',
    },
  });
  expect(env.lines).toMatchObject([{ level: 'error', object: 'y/x', kind: 'ConfigMap', request: 'u1' }]);
});

async function dial(server: WebhookServer, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: server.port, ca, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

async function statusLineOver(socket: TLSSocket): Promise<string> {
  const body = JSON.stringify(review());
  const type = 'content-type: application/json';
  socket.write(
    `POST ${PATH} HTTP/1.1\r\nhost: x\r\n${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const [data] = await once(socket, 'data');
  return String(data).split('\r\n')[0] ?? '';
}

test('a new certificate applies to new connections and does not interrupt existing ones', async () => {
  await using env = await start();
  const { server } = env;
  const before = await dial(server);
  expect(await statusLineOver(before)).toBe('HTTP/1.1 200 OK');
  server.use(two);
  expect(await statusLineOver(before)).toBe('HTTP/1.1 200 OK');
  const after = await dial(server);
  expect(before.getPeerCertificate().fingerprint256).not.toBe(after.getPeerCertificate().fingerprint256);
  expect(await statusLineOver(after)).toBe('HTTP/1.1 200 OK');
  before.destroy();
  after.destroy();
});

test('TLS versions before 1.2 are rejected', async () => {
  await using env = await start();
  await expect(dial(env.server, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })).rejects.toThrow();
  const socket = await dial(env.server, { maxVersion: 'TLSv1.2' });
  expect(socket.getProtocol()).toBe('TLSv1.2');
  socket.destroy();
});

test('closing the webhook server waits for a pending review', async () => {
  const [started, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using env = await start({
    validate: async () => {
      started.resolve();
      await released.promise;
      return allow();
    },
  });
  const pending = send(env.server, review());
  await started.promise;
  const closed = env.server.close();
  released.resolve();
  expect((await pending).status).toBe(200);
  await closed;
});

test('idle and unused connections do not delay closing the server', async () => {
  await using env = await start();
  const used = await dial(env.server);
  await statusLineOver(used);
  const unused = await dial(env.server);
  const closed = env.server.close();
  await once(used.resume(), 'close');
  env.clock.advance(500);
  await once(unused.resume(), 'close');
  await closed;
});
