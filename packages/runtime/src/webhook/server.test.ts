import { once } from 'node:events';
import { request } from 'node:https';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { collectingLogger, Registry } from '@vmwright/core';
import { describe, expect, test } from 'vitest';
import { ConfigMap } from '../../test/kinds.ts';
import { VirtualClock } from '../../test/virtual-clock.ts';
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

async function ask(
  server: WebhookServer,
  body: unknown,
  { path = PATH, method = 'POST', headers = JSON_TYPE as Record<string, string> } = {},
) {
  const sent = request({ host: '127.0.0.1', port: server.port, path, method, headers, ca, agent: false });
  sent.on('error', () => undefined); // of a body that nobody reads any more
  sent.end(typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body));
  const [response] = await once(sent, 'response');
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return { status: response.statusCode, text };
}

function review(more: object = {}): object {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'y' } };
  const asked = {
    uid: 'u1',
    operation: 'CREATE',
    name: 'x',
    namespace: 'y',
    object,
    userInfo: { username: 'jane' },
  };
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { ...asked, ...more } };
}

test('a review is answered under its uid', async () => {
  await using all = await start();
  const { status, text } = await ask(all.server, review());
  expect(status).toBe(200);
  expect(JSON.parse(text)).toEqual({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: 'u1', allowed: true },
  });
});

describe('what is no review', () => {
  const wrong: [string, unknown, number, string][] = [
    ['no JSON', 'x{', 400, 'the body is no JSON\n'],
    ['nothing', '', 400, 'the body is no JSON\n'],
    ['a number', 1, 400, 'the body must be of kind AdmissionReview of admission.k8s.io/v1\n'],
    [
      'an older version',
      { apiVersion: 'admission.k8s.io/v1beta1', kind: 'AdmissionReview' },
      400,
      'the body must be',
    ],
    ['another kind', { apiVersion: 'admission.k8s.io/v1', kind: 'Pod' }, 400, 'the body must be'],
    ['no request', { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }, 400, 'has no request\n'],
    ['no uid', review({ uid: undefined }), 400, 'has no request.uid\n'],
    [
      'an operation not asked for',
      review({ operation: 'CONNECT' }),
      400,
      'must be CREATE, UPDATE or DELETE, not CONNECT',
    ],
    ['no object', review({ object: null }), 400, 'request.object holds no object'],
    [
      'another object',
      review({ object: { apiVersion: 'v1', kind: 'Pod', metadata: {} } }),
      400,
      'holds a Pod of v1',
    ],
    ['no old object', review({ operation: 'DELETE' }), 400, 'request.oldObject holds no object'],
  ];
  test.for(wrong)('%s is answered with a sentence', async ([, body, status, sentence]) => {
    await using all = await start();
    const answer = await ask(all.server, body);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(sentence);
    expect((await ask(all.server, review())).status).toBe(200);
  });

  test('what is too large, of another type, asked otherwise or elsewhere is refused as such', async () => {
    await using all = await start();
    const { server } = all;
    expect(await ask(server, Buffer.alloc(9 * 1024 * 1024, ' '))).toEqual({
      status: 413,
      text: 'the request body exceeds 8388608 bytes\n',
    });
    const chunked = { ...JSON_TYPE, 'transfer-encoding': 'chunked' };
    expect((await ask(server, Buffer.alloc(9 * 1024 * 1024, ' '), { headers: chunked })).status).toBe(413);
    expect((await ask(server, review(), { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
    expect((await ask(server, '', { method: 'GET' })).status).toBe(405);
    expect((await ask(server, review(), { path: '/validate--v1-pod' })).status).toBe(404);
    expect((await ask(server, review())).status).toBe(200);
  });
});

test('a handler that hangs is given up a little before the API server does', async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  await using all = await start({
    validate: (_, { signal }) => {
      begun.resolve(signal);
      return new Promise(() => undefined);
    },
  });
  const { server, clock } = all;
  const asked = ask(server, review(), { path: `${PATH}?timeout=10.5s` });
  const signal = await begun.promise;
  clock.advance(9_900);
  expect(signal.aborted).toBe(false);
  clock.advance(100);
  expect(await asked).toEqual({ status: 500, text: `${PATH} has found no answer in time\n` });
  expect(signal.aborted).toBe(true);
});

test('a time-out longer than the 30 s that the API server allows counts as 30 s', async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  await using all = await start({
    validate: (_, { signal }) => {
      begun.resolve(signal);
      return new Promise(() => undefined);
    },
  });
  const asked = ask(all.server, review(), { path: `${PATH}?timeout=1000h` });
  const signal = await begun.promise;
  all.clock.advance(28_400);
  expect(signal.aborted).toBe(false);
  all.clock.advance(100);
  expect((await asked).status).toBe(500);
});

test('a handler that throws refuses with 500 and no details; the log has the object', async () => {
  await using all = await start({
    validate: () => {
      throw new Error('the password is hunter2');
    },
  });
  const { status, text } = await ask(all.server, review());
  expect(status).toBe(200);
  expect(JSON.parse(text).response).toEqual({
    uid: 'u1',
    allowed: false,
    status: {
      status: 'Failure',
      code: 500,
      reason: 'InternalError',
      message: 'the admission of ConfigMap y/x has failed; the log of its webhook tells why (request u1)',
    },
  });
  expect(all.lines).toMatchObject([{ level: 'error', object: 'y/x', kind: 'ConfigMap', request: 'u1' }]);
});

async function dial(server: WebhookServer, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: server.port, ca, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

async function over(socket: TLSSocket): Promise<string> {
  const body = JSON.stringify(review());
  const type = 'content-type: application/json';
  socket.write(
    `POST ${PATH} HTTP/1.1\r\nhost: x\r\n${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const [data] = await once(socket, 'data');
  return String(data).split('\r\n')[0] ?? '';
}

test('another certificate is for connections to come, and cuts none that there is', async () => {
  await using all = await start();
  const { server } = all;
  const before = await dial(server);
  expect(await over(before)).toBe('HTTP/1.1 200 OK');
  server.use(two);
  expect(await over(before)).toBe('HTTP/1.1 200 OK');
  const after = await dial(server);
  expect(before.getPeerCertificate().fingerprint256).not.toBe(after.getPeerCertificate().fingerprint256);
  expect(await over(after)).toBe('HTTP/1.1 200 OK');
  before.destroy();
  after.destroy();
});

test('what is older than TLS 1.2 is not spoken', async () => {
  await using all = await start();
  await expect(dial(all.server, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })).rejects.toThrow();
  const socket = await dial(all.server, { maxVersion: 'TLSv1.2' });
  expect(socket.getProtocol()).toBe('TLSv1.2');
  socket.destroy();
});

test('closing lets an answer under way end', async () => {
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using all = await start({
    validate: async () => {
      begun.resolve();
      await go.promise;
      return allow();
    },
  });
  const asked = ask(all.server, review());
  await begun.promise;
  const closed = all.server.close();
  go.resolve();
  expect((await asked).status).toBe(200);
  await closed;
});

test('connections that clients keep, or made in advance, do not hold up the end', async () => {
  await using all = await start();
  const used = await dial(all.server);
  await over(used);
  const unused = await dial(all.server);
  const closed = all.server.close();
  await once(used.resume(), 'close');
  all.clock.advance(500);
  await once(unused.resume(), 'close');
  await closed;
});
