import { randomUUID } from 'node:crypto';
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions, request as requestHttps } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type {
  ServerAddress,
  TlsOptions,
  Transport,
  TransportRequest,
  TransportResponse,
  VsphereWorld,
} from '../world.ts';

/** Requests under way at a time, beside those that last. */
const CONNECTIONS = 8;
const CONNECT_TIMEOUT_MS = 10_000;

/** The real world, by what Node has: for who uses the client without the runtime, which has one too. */
export const nodeWorld: VsphereWorld = {
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), 2 ** 31 - 1));
    return { cancel: () => clearTimeout(timer) };
  },
  random: () => Math.random(),
  uuid: () => randomUUID(),
  connect: (server) => new NodeTransport(server),
  pinsCertificates: true,
};

class NodeTransport implements Transport {
  readonly #server: ServerAddress;
  readonly #brief: HttpAgent | HttpsAgent;
  readonly #lasting: HttpAgent | HttpsAgent;

  constructor(server: ServerAddress) {
    const { tls } = server;
    const agent = (maxSockets: number) =>
      tls === undefined
        ? new HttpAgent({ keepAlive: true, maxSockets })
        : new TlsAgent(tls, { keepAlive: true, maxSockets });
    this.#server = server;
    this.#brief = agent(CONNECTIONS);
    this.#lasting = agent(Number.POSITIVE_INFINITY);
  }

  request(request: TransportRequest): Promise<TransportResponse> {
    const { method, path, headers, body, signal, lasting, beforeSend } = request;
    const send = this.#server.tls === undefined ? requestHttp : requestHttps;
    const agent = lasting ? this.#lasting : this.#brief;
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    return new Promise((resolve, reject) => {
      const options = { method, agent, headers: { ...headers, ...length }, ...(signal && { signal }) };
      const sent = send(new URL(path, this.#server.origin), options, (answer) => resolve(responseOf(answer)));
      sent.on('error', reject);
      const post = () => {
        try {
          beforeSend?.();
          sent.end(body);
        } catch (error) {
          sent.destroy();
          reject(error);
        }
      };
      // Its head goes out with its body, which waits until there is a connection.
      if (beforeSend === undefined) post();
      else sent.once('socket', (socket) => (socket.connecting ? socket.once('connect', post) : post()));
    });
  }

  async close(): Promise<void> {
    this.#brief.destroy();
    this.#lasting.destroy();
  }
}

/** Opens connections that are trusted as the options of that moment say. */
class TlsAgent extends HttpsAgent {
  readonly #tls: () => Promise<TlsOptions>;

  constructor(tls: () => Promise<TlsOptions>, options: ConstructorParameters<typeof HttpsAgent>[0]) {
    super(options);
    this.#tls = tls;
  }

  override createConnection(
    { host, port }: RequestOptions,
    opened?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    if (opened === undefined) return;
    this.#tls()
      .then((tls) => openTls(host ?? 'localhost', Number(port ?? 443), tls))
      .then(
        (socket) => opened(null, socket),
        // Node looks at the second only where there is no first.
        (error) => Reflect.apply(opened, undefined, [error]),
      );
  }
}

function openTls(host: string, port: number, { ca, insecure, thumbprint }: TlsOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    // With a thumbprint it is the certificate that counts, and nobody's signature on it.
    const rejectUnauthorized = insecure !== true && thumbprint === undefined;
    const socket = connectTls({
      host,
      port,
      rejectUnauthorized,
      ALPNProtocols: ['http/1.1'],
      ...(/[a-z]/i.test(host) && !host.includes(':') && { servername: host }),
      ...(ca !== undefined && { ca }),
    });
    socket.setNoDelay(true);
    const late = setTimeout(() => socket.destroy(new Error('no connection in time')), CONNECT_TIMEOUT_MS);
    socket.once('close', () => clearTimeout(late));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      clearTimeout(late);
      socket.removeListener('error', reject);
      const shown = socket.getPeerCertificate().fingerprint256?.replaceAll(':', '').toLowerCase();
      if (thumbprint === undefined || shown === thumbprint) return resolve(socket);
      socket.destroy();
      const words = `the server shows another certificate than the pinned one, with the thumbprint ${shown}`;
      reject(Object.assign(new Error(words), { code: 'CERT_NOT_PINNED' }));
    });
  });
}

function responseOf(answer: IncomingMessage): TransportResponse {
  return {
    status: answer.statusCode ?? 0,
    header: (name) => [answer.headers[name]].flat().join(', ') || undefined,
    text: async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk);
      return Buffer.concat(chunks).toString();
    },
  };
}
