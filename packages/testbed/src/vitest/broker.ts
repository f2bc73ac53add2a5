import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { messageOf } from '@vmwright/core';
import { field } from '../kubernetes/api.ts';
import { type ControlPlane, startControlPlane } from '../kubernetes/control-plane.ts';
import { startKubeVirt } from '../kubevirt/kubevirt.ts';

/** Parts that test files share. */
export type SharedPart = 'control-plane' | 'kubevirt';

/**
 * HTTP server in vitest's main process for the parts that test files share. It starts a part when the first test file
 * requests it, and stops all parts after the last test file.
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
    throw new Error(`unknown shared part ${name}`);
  }

  #getControlPlane(): Promise<ControlPlane> {
    this.#controlPlane ??= startControlPlane({ scheduler: true }).then(
      (started) => this.#stack.use(started),
      (error) => {
        this.#controlPlane = undefined; // the next request tries again
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
    if (kubeVirt.imitated) throw new Error(`tests need the real KubeVirt: ${kubeVirt.reason}`);
    return controlPlane;
  }
}

/** Requests a shared part from the broker. @returns the path of an administrator's kubeconfig */
export async function requestSharedPart(url: string, part: SharedPart): Promise<string> {
  const response = await fetch(`${url}/${part}`);
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}
