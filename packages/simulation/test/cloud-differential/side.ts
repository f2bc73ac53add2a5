import { CloudClient, CloudError, type CloudWorld, NotFoundError, type Server } from '@vmwright/cloud';
import type { Name, Operation, Which } from './operations.ts';

export interface SideOptions {
  readonly world: CloudWorld;
  readonly url: string;
  readonly apiKey: string;
  /** Prefix of all names in the sequence. It keeps sequences apart, because all of them share a cloud. */
  readonly prefix: string;
}

/** Result of an operation in a form that is comparable between the real cloud and the model. */
export type Result = { readonly ok: unknown } | { readonly error: unknown };

const NO_SERVER = '00000000-0000-4000-8000-00000000dead';
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Runs the operations of a sequence on the real cloud or on the model. */
export class Side implements AsyncDisposable {
  readonly #client: CloudClient;
  readonly #wrongKeyClient: CloudClient;
  readonly #prefix: string;
  /** Server ids in the order in which they were first seen. */
  readonly #seen: string[] = [];

  constructor({ world, url, apiKey, prefix }: SideOptions) {
    this.#client = new CloudClient({ world, url, apiKey });
    this.#wrongKeyClient = new CloudClient({ world, url, apiKey: `not-${apiKey}` });
    this.#prefix = prefix;
  }

  async perform(operation: Operation): Promise<Result> {
    try {
      return { ok: this.#normalized(await this.#act(operation)) };
    } catch (error) {
      if (!(error instanceof CloudError)) throw error;
      const { name, code, status, problem } = error;
      const serverId = 'serverId' in error ? error.serverId : undefined;
      // Messages of the schema validator are not compared, because they are not part of the API.
      const message = problem === 'INVALID_REQUEST' ? undefined : error.message;
      return { error: this.#normalized({ name, code, status, problem, serverId, message }) };
    }
  }

  /** Returns all servers of the sequence. */
  async servers(): Promise<unknown> {
    return this.#normalized(await this.#listed({ sequence: this.#prefix }));
  }

  /** Whether a server of the sequence is in a transitional state. */
  async isMoving(isTransitional: (server: Server) => boolean): Promise<boolean> {
    return (await this.#listed({ sequence: this.#prefix })).flat().some(isTransitional);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
    await this.#wrongKeyClient.close();
  }

  async #act(operation: Operation): Promise<unknown> {
    const client = this.#client;
    switch (operation.do) {
      case 'check':
        return client.check(this.#name(operation.name));
      case 'create': {
        const { name, key } = operation;
        const labels = { ...operation.labels, sequence: this.#prefix };
        const full = key === undefined ? undefined : `${this.#prefix}-${key}`;
        return this.#remember(await client.create({ name: this.#name(name), labels }, full));
      }
      case 'get':
        return this.#remember(await client.get(this.#id(operation.which)));
      case 'status':
        return client.status(this.#id(operation.which));
      case 'delete':
        return client.delete(this.#id(operation.which));
      case 'relabel':
        return client.relabel(this.#id(operation.which), operation.labels);
      case 'list': {
        const { name, labels, limit } = operation;
        return this.#listed(
          { ...labels, sequence: this.#prefix },
          { ...(name && { name: this.#name(name) }), ...(limit !== undefined && { limit }) },
        );
      }
      case 'wrongKey':
        return this.#wrongKeyClient.get(this.#id(0)).catch((error) => {
          if (error instanceof NotFoundError) throw new Error('a request with a wrong API key was accepted');
          throw error;
        });
    }
  }

  /** Lists servers, page by page. */
  async #listed(
    labels: Readonly<Record<string, string | undefined>>,
    more: { readonly name?: string; readonly limit?: number } = {},
  ): Promise<readonly (readonly Server[])[]> {
    return Array.fromAsync(this.#client.list({ labels, ...more }));
  }

  #name(name: Name): string {
    return 'own' in name ? `${this.#prefix}-${name.own}` : name.fixed;
  }

  #id(which: Which): string {
    return (which === 'none' ? undefined : this.#seen.at(-1 - which)) ?? NO_SERVER;
  }

  #remember(server: Server): Server {
    if (!this.#seen.includes(server.id)) this.#seen.push(server.id);
    return server;
  }

  /**
   * Replaces values that differ between two clouds: ids by their order of appearance, and times and CPU utilization by
   * constants.
   */
  #normalized(value: unknown): unknown {
    if (value === undefined) return undefined;
    const text = JSON.stringify(value, function (this: object, name, part) {
      if (name === 'createdAt') return Number.isNaN(Date.parse(part)) ? part : 'a time';
      const isBusy = name === 'cpuUtilization' && 'state' in this && this.state === 'running';
      return isBusy ? 'any' : part;
    });
    const alias = (id: string) => (id === NO_SERVER ? id : `server ${this.#seen.indexOf(id)}`);
    return JSON.parse(text.replaceAll(UUID, alias));
  }
}
