import { createServer as createHttpServer } from 'node:http';
import { connect as connectTcp, createServer as createTcpServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { nodeWorld, type TransportResponse } from '@vmwright/core';
import { listen } from '@vmwright/core/testing';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';
import { connect } from '../../test/connect.ts';
import { clientOf, kubeconfigWith } from '../../test/kubeconfig.ts';
import { kubeconfigAccess } from '../access/kubeconfig.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { collectionPath } from '../kind/kind.ts';

function forward(socket: Duplex, port: number, host: string): Socket {
  const upstream = connectTcp(port, host);
  for (const end of [socket, upstream]) end.on('error', () => undefined);
  onTestFinished(() => void upstream.destroy());
  socket.pipe(upstream).pipe(socket);
  return upstream;
}

async function firstLine(response: TransportResponse): Promise<string | undefined> {
  for await (const line of response.lines()) return line;
  return undefined;
}

test('ten watches on the API server share one connection', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  const access = await kubeconfigAccess({ world: nodeWorld, path: cluster.kubeconfig });
  const upstream = new URL(access.server.origin);
  let connections = 0;
  const counter = createTcpServer((socket) => {
    connections += 1;
    forward(socket, Number(upstream.port), upstream.hostname);
  });
  const origin = `https://127.0.0.1:${await listen(counter, onTestFinished)}`;
  const transport = nodeWorld.connect({ ...access.server, origin });
  onTestFinished(() => transport.close());
  const path = `${collectionPath(Lease, namespace)}?watch=true`;
  const watches = await Promise.all(
    Array.from({ length: 10 }, () => transport.request({ method: 'GET', path, headers: {}, lasting: true })),
  );
  const lines = watches.map(firstLine);
  await client.create(Lease, { metadata: { namespace, name: 'seen' }, spec: {} });
  for (const line of await Promise.all(lines)) expect(line).toContain('"name":"seen"');
  expect(connections).toBe(1);
});

test("requests and watches use the kubeconfig's proxy-url", async ({ cluster, namespace }) => {
  const requested: string[] = [];
  const proxy = createHttpServer().on('connect', (request, socket) => {
    const [host = '', port] = request.url?.split(':') ?? [];
    requested.push(host);
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    forward(socket, Number(port), host);
  });
  const { ca, as } = cluster.access;
  if (!('key' in as)) throw new Error('the cluster has no client certificate');
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const path = await kubeconfigWith(cluster, {
    cluster: {
      'certificate-authority-data': base64(ca),
      'proxy-url': `http://127.0.0.1:${await listen(proxy, onTestFinished)}`,
    },
    user: { 'client-certificate-data': base64(as.certificate), 'client-key-data': base64(as.key) },
  });
  await using client = await clientOf(path);
  const created = await client.create(Lease, { metadata: { namespace, name: 'proxied' }, spec: {} });
  for await (const event of client.watch(Lease, {
    namespace,
    sendInitialEvents: true,
    resourceVersion: '',
  })) {
    if (event.type !== 'ADDED') continue;
    expect(event.object.metadata.uid).toBe(created.metadata.uid);
    break;
  }
  expect(requested).toEqual(['127.0.0.1', '127.0.0.1']);
});
