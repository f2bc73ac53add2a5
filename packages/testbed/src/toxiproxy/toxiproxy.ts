import { Assets } from '../assets/assets.ts';
import { Part } from '../process/part.ts';
import { freePort, portFor } from '../process/ports.ts';
import { Api } from './api.ts';
import { ToxicProxy } from './toxic-proxy.ts';

export interface ProxyOptions {
  /** As it reads in toxiproxy's log; one of its own for each proxy. */
  readonly name: string;
  /** The server behind it, `host:port`. */
  readonly upstream: string;
}

const HOST = '127.0.0.1';

/** A server of proxies that break connections on demand. It keeps them in memory: after `part.kill()` all are gone. */
export class Toxiproxy implements AsyncDisposable {
  readonly part: Part;
  readonly #api: Api;

  constructor(part: Part, api: Api) {
    this.part = part;
    this.#api = api;
  }

  /** A new proxy, up and without faults, that stays until the end of this server. */
  async proxy({ name, upstream }: ProxyOptions): Promise<ToxicProxy> {
    const port = await freePort();
    await this.#api.create('/proxies', { name, listen: `${HOST}:${port}`, upstream, enabled: true });
    return new ToxicProxy(this.#api, { name, host: HOST, port });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.part[Symbol.asyncDispose]();
  }
}

export async function startToxiproxy(options: { readonly port?: number } = {}): Promise<Toxiproxy> {
  const command = await new Assets().path('toxiproxy-server');
  const port = await portFor('toxiproxy', options.port);
  const api = new Api(`http://${HOST}:${port}`);
  const part = await Part.start({
    name: 'toxiproxy',
    command,
    args: ['-host', HOST, '-port', String(port)],
    ready: () => api.serves(),
  });
  return new Toxiproxy(part, api);
}
