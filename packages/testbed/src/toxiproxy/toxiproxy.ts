import { Assets } from '../assets/assets.ts';
import { Part } from '../process/part.ts';
import { freePort, portFor } from '../process/ports.ts';
import { Api } from './api.ts';
import { ToxicProxy } from './toxic-proxy.ts';

export interface ProxyOptions {
  /** Name in toxiproxy's log; must be unique. */
  readonly name: string;
  /** Address of the server behind the proxy, `host:port`. */
  readonly upstream: string;
}

const HOST = '127.0.0.1';

/** A toxiproxy server. Its proxies are in memory only, so they are lost after `part.kill()`. */
export class Toxiproxy implements AsyncDisposable {
  readonly part: Part;
  readonly #api: Api;

  constructor(part: Part, api: Api) {
    this.part = part;
    this.#api = api;
  }

  /** Creates a proxy without faults. It exists until the server stops. */
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
