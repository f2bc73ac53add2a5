import type { Transport, World } from '@vmwright/runtime';
import { isJson, type Json } from '../apiserver/json.ts';
import type { MachineDraft, RemoteMachine } from './machine.ts';
import { REMOTE } from './remote.ts';

/**
 * Error response of the backend, or a missing response. Without a response, the caller cannot know whether the backend
 * executed the request.
 */
export class RemoteError extends Error {
  readonly code = 'REMOTE';
  /** HTTP status of the response; undefined without a response. */
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
  /** Timeout of a request. @default 8_000 */
  readonly timeoutMs?: number;
}

/** Response of a list request. */
export interface RemoteList {
  /** Time by the backend's clock, in milliseconds since 1970. */
  readonly now: number;
  readonly items: readonly RemoteMachine[];
}

/** Client of the remote backend. It never retries; the caller decides whether a retry is safe. */
export class RemoteClient {
  readonly #options: RemoteClientOptions;
  readonly #transport: Transport;

  constructor(options: RemoteClientOptions) {
    this.#options = options;
    this.#transport = options.world.connect({ origin: REMOTE });
  }

  async create(draft: MachineDraft, signal: AbortSignal): Promise<RemoteMachine> {
    return machineIn(await this.#request('POST', '/machines', signal, draft));
  }

  /** @returns undefined if the machine does not exist */
  async get(id: string, signal: AbortSignal): Promise<RemoteMachine | undefined> {
    return this.#find(`/machines/${id}`, signal);
  }

  async byKey(key: string, signal: AbortSignal): Promise<RemoteMachine | undefined> {
    return this.#find(`/keys/${key}`, signal);
  }

  /** Lists the machines. The backend may return state that is some seconds old. */
  async list(signal: AbortSignal): Promise<RemoteList> {
    const { now, items } = await this.#request('GET', '/machines', signal);
    if (typeof now !== 'number' || !Array.isArray(items))
      throw new RemoteError('GET /machines: the response is not a list');
    return { now, items: items.map(machineIn) };
  }

  async resize(id: string, size: number, signal: AbortSignal): Promise<RemoteMachine> {
    return machineIn(await this.#request('PATCH', `/machines/${id}`, signal, { size }));
  }

  /** Starts the deletion of a machine. Succeeds if the machine does not exist. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#request('DELETE', `/machines/${id}`, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #find(path: string, signal: AbortSignal): Promise<RemoteMachine | undefined> {
    try {
      return machineIn(await this.#request('GET', path, signal));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #request(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    signal: AbortSignal,
    body?: object,
  ): Promise<Json> {
    const { world, token, timeoutMs = 8_000 } = this.#options;
    signal.throwIfAborted();
    const abort = new AbortController();
    const forwardAbort = () => abort.abort(signal.reason);
    signal.addEventListener('abort', forwardAbort, { once: true });
    const onTimeout = () =>
      abort.abort(new RemoteError(`${method} ${path}: no response within ${timeoutMs / 1_000} s`));
    const timer = world.after(timeoutMs, onTimeout);
    try {
      const response = await this.#transport.request({
        method,
        path,
        headers: { authorization: `Bearer ${token}` },
        ...(body && { body: JSON.stringify(body) }),
        signal: abort.signal,
      });
      const content: unknown = JSON.parse(await response.text());
      if (response.status < 300 && isJson(content)) return content;
      const detail = isJson(content) ? String(content.message) : 'the response is not a JSON object';
      throw new RemoteError(`${method} ${path}: ${detail}`, response.status);
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', forwardAbort);
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof RemoteError && error.status === 404;
}

function machineIn(value: unknown): RemoteMachine {
  if (!isMachine(value)) throw new RemoteError('the response is not a machine');
  return value;
}

function isMachine(value: unknown): value is RemoteMachine {
  return isJson(value) && typeof value.id === 'string' && typeof value.size === 'number';
}
