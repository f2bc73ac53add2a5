import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { messageOf } from '@vmwright/core';
import { field } from '../kubernetes/api.ts';
import { type ControlPlane, startControlPlane } from '../kubernetes/control-plane.ts';
import { startKubeVirt } from '../kubevirt/kubevirt.ts';

/** What test files share: started when the first of them asks, stopped after the last. */
export type Shared = 'control-plane' | 'kubevirt';

/**
 * Starts shared parts in the process that outlives all test files, at the request of the processes that run them. A run
 * that asks for nothing starts nothing.
 */
export class Broker implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #stack = new AsyncDisposableStack();
  #controlPlane: Promise<ControlPlane> | undefined;
  #kubeVirt: Promise<ControlPlane> | undefined;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async start(): Promise<Broker> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const broker = new Broker(server, `http://127.0.0.1:${field(server.address(), 'port')}`);
    server.on('request', async (request, response) => {
      try {
        const { cluster } = await broker.#get(request.url?.slice(1));
        response.end(cluster.kubeconfig);
      } catch (error) {
        response.writeHead(500).end(messageOf(error));
      }
    });
    return broker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await this.#stack.disposeAsync();
  }

  #get(name: string | undefined): Promise<ControlPlane> {
    if (name === 'control-plane') return this.#getControlPlane();
    if (name === 'kubevirt') return this.#getKubeVirt();
    throw new Error(`nothing shared is called ${name}`);
  }

  #getControlPlane(): Promise<ControlPlane> {
    this.#controlPlane ??= startControlPlane({ scheduler: true }).then(
      (started) => this.#stack.use(started),
      (error) => {
        this.#controlPlane = undefined; // the next one who asks may have better luck
        throw error;
      },
    );
    return this.#controlPlane;
  }

  #getKubeVirt(): Promise<ControlPlane> {
    this.#kubeVirt ??= this.#startKubeVirt().catch((error) => {
      this.#kubeVirt = undefined;
      throw error;
    });
    return this.#kubeVirt;
  }

  async #startKubeVirt(): Promise<ControlPlane> {
    const controlPlane = await this.#getControlPlane();
    const kubeVirt = this.#stack.use(await startKubeVirt(controlPlane));
    if (kubeVirt.imitated) throw new Error(`tests want the real KubeVirt: ${kubeVirt.why}`);
    return controlPlane;
  }
}

/** Asks a broker; the answer is an administrator's kubeconfig file. */
export async function askBroker(url: string, what: Shared): Promise<string> {
  const response = await fetch(`${url}/${what}`);
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}
