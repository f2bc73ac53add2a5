import type { Transport, World } from '@vmwright/runtime';
import { isJson, type Json } from '../apiserver/json.ts';
import type { MachineDraft, RemoteMachine } from './machine.ts';
import { REMOTE } from './remote.ts';

/** The backend has said no, or nothing at all: then nobody knows whether it has acted. */
export class RemoteError extends Error {
  readonly code = 'REMOTE';
  /** Of its answer; undefined for none. */
  readonly status: number | undefined;

  constructor(message: string, status?: number, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RemoteError';
    this.status = status;
  }
}

export interface RemoteClientOptions {
  readonly world: World;
  readonly token: string;
  /** For an answer. @default 8_000 */
  readonly timeoutMs?: number;
}

/** What a list shows. */
export interface RemoteList {
  /** The backend's clock. */
  readonly now: number;
  readonly items: readonly RemoteMachine[];
}

/** Talks to the remote backend. Nothing is sent twice in here: who knows what that would do decides. */
export class RemoteClient {
  readonly #options: RemoteClientOptions;
  readonly #transport: Transport;

  constructor(options: RemoteClientOptions) {
    this.#options = options;
    this.#transport = options.world.connect({ origin: REMOTE });
  }

  async create(draft: MachineDraft, signal: AbortSignal): Promise<RemoteMachine> {
    return machineIn(await this.#ask('POST', '/machines', signal, draft));
  }

  /** @returns undefined when there is none */
  async get(id: string, signal: AbortSignal): Promise<RemoteMachine | undefined> {
    return this.#maybe(`/machines/${id}`, signal);
  }

  async byKey(key: string, signal: AbortSignal): Promise<RemoteMachine | undefined> {
    return this.#maybe(`/keys/${key}`, signal);
  }

  /** As it was some seconds ago. */
  async list(signal: AbortSignal): Promise<RemoteList> {
    const { now, items } = await this.#ask('GET', '/machines', signal);
    if (typeof now !== 'number' || !Array.isArray(items))
      throw new RemoteError('GET /machines: that is no list');
    return { now, items: items.map(machineIn) };
  }

  async resize(id: string, size: number, signal: AbortSignal): Promise<RemoteMachine> {
    return machineIn(await this.#ask('PATCH', `/machines/${id}`, signal, { size }));
  }

  /** Asks for the deletion, which takes a while. One that is gone already is gone. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#ask('DELETE', `/machines/${id}`, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #maybe(path: string, signal: AbortSignal): Promise<RemoteMachine | undefined> {
    try {
      return machineIn(await this.#ask('GET', path, signal));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #ask(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    signal: AbortSignal,
    content?: object,
  ): Promise<Json> {
    const { world, token, timeoutMs = 8_000 } = this.#options;
    signal.throwIfAborted();
    const over = new AbortController();
    const follow = () => over.abort(signal.reason);
    signal.addEventListener('abort', follow, { once: true });
    const late = () => over.abort(new RemoteError(`${method} ${path}: no answer in ${timeoutMs / 1_000} s`));
    const timer = world.after(timeoutMs, late);
    try {
      const response = await this.#transport.request({
        method,
        path,
        headers: { authorization: `Bearer ${token}` },
        ...(content && { body: JSON.stringify(content) }),
        signal: over.signal,
      });
      const answer: unknown = JSON.parse(await response.text());
      if (response.status < 300 && isJson(answer)) return answer;
      const why = isJson(answer) ? String(answer.message) : 'that is no object';
      throw new RemoteError(`${method} ${path}: ${why}`, response.status);
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', follow);
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof RemoteError && error.status === 404;
}

function machineIn(value: unknown): RemoteMachine {
  if (!isMachine(value)) throw new RemoteError('the answer is no machine');
  return value;
}

function isMachine(value: unknown): value is RemoteMachine {
  return isJson(value) && typeof value.id === 'string' && typeof value.size === 'number';
}
