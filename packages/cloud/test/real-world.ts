import { once } from 'node:events';
import { Agent, request as requestHttp } from 'node:http';
import { request as requestHttps, Agent as TlsAgent } from 'node:https';
import type { CloudWorld, ServerAddress, Transport, TransportRequest } from '../src/client/world.ts';

/** The real world, for the client in tests: the machine's clocks and Node's own HTTP. */
export const realWorld: CloudWorld = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return { cancel: () => clearTimeout(timer) };
  },
  random: () => Math.random(),
  connect,
};

function connect({ origin, tls }: ServerAddress): Transport {
  const agent = tls === undefined ? new Agent({ keepAlive: true }) : new TlsAgent({ keepAlive: true });
  const { hostname, port } = new URL(origin);
  return {
    async request({ method, path, headers, body, signal }: TransportRequest) {
      const trusted = await tls?.();
      const options = { hostname, port, method, path, headers: { ...headers }, agent, signal };
      const sent = tls === undefined ? requestHttp(options) : requestHttps({ ...options, ca: trusted?.ca });
      sent.end(body);
      const [response] = await once(sent, 'response');
      return {
        status: response.statusCode,
        header: (name) => response.headers[name],
        text: async () => Buffer.concat(await response.toArray()).toString(),
      };
    },
    close: async () => agent.destroy(),
  };
}
