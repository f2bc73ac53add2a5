import { CloudClient, CloudError, type CloudWorld, NotFoundError, type Server } from '@vmwright/cloud';
import type { Name, Operation, Which } from './operations.ts';

export interface SideOptions {
  readonly world: CloudWorld;
  readonly url: string;
  readonly apiKey: string;
  /** The sequence's own, since all share a cloud. */
  readonly prefix: string;
}

/** What an operation has come to, in a form that is the same on both clouds. */
export type Answer = { readonly ok: unknown } | { readonly refused: unknown };

const NOBODY = '00000000-0000-4000-8000-00000000dead';
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** One of the two clouds, as a sequence sees it. */
export class Side implements AsyncDisposable {
  readonly #client: CloudClient;
  readonly #intruder: CloudClient;
  readonly #prefix: string;
  /** Ids in the order in which they came up. */
  readonly #seen: string[] = [];

  constructor({ world, url, apiKey, prefix }: SideOptions) {
    this.#client = new CloudClient({ world, url, apiKey });
    this.#intruder = new CloudClient({ world, url, apiKey: `not-${apiKey}` });
    this.#prefix = prefix;
  }

  async perform(operation: Operation): Promise<Answer> {
    try {
      return { ok: this.#shared(await this.#act(operation)) };
    } catch (error) {
      if (!(error instanceof CloudError)) throw error;
      const { name, code, status, problem } = error;
      const serverId = 'serverId' in error ? error.serverId : undefined;
      // The words of the library that checks schemas are nobody's promise.
      const message = problem === 'INVALID_REQUEST' ? undefined : error.message;
      return { refused: this.#shared({ name, code, status, problem, serverId, message }) };
    }
  }

  /** All servers of the sequence. */
  async servers(): Promise<unknown> {
    return this.#shared(await this.#listed({ sequence: this.#prefix }));
  }

  /** Whether something is on its way that will not be for long. */
  async isMoving(is: (server: Server) => boolean): Promise<boolean> {
    return (await this.#listed({ sequence: this.#prefix })).flat().some(is);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
    await this.#intruder.close();
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
        return this.#saw(await client.create({ name: this.#name(name), labels }, full));
      }
      case 'get':
        return this.#saw(await client.get(this.#id(operation.which)));
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
      case 'intrude':
        return this.#intruder.get(this.#id(0)).catch((error) => {
          if (error instanceof NotFoundError) throw new Error('a stranger was let in');
          throw error;
        });
    }
  }

  /** Page by page. */
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
    return (which === 'none' ? undefined : this.#seen.at(-1 - which)) ?? NOBODY;
  }

  #saw(server: Server): Server {
    if (!this.#seen.includes(server.id)) this.#seen.push(server.id);
    return server;
  }

  /** Without what is by nature different on two clouds: ids by when they came up, no times, and how busy a CPU is. */
  #shared(value: unknown): unknown {
    if (value === undefined) return undefined;
    const text = JSON.stringify(value, function (this: object, name, part) {
      if (name === 'createdAt') return Number.isNaN(Date.parse(part)) ? part : 'a time';
      const isBusy = name === 'cpuUtilization' && 'state' in this && this.state === 'running';
      return isBusy ? 'as busy as it is' : part;
    });
    const known = (id: string) => (id === NOBODY ? id : `server ${this.#seen.indexOf(id)}`);
    return JSON.parse(text.replaceAll(UUID, known));
  }
}
