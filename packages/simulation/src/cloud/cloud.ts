import type { NewServer, Server } from '@vmwright/cloud';
import { same } from '../apiserver/json.ts';
import type { BufferedResponse, ModelRequest, ModelResponse, ModelServer } from '../world/server.ts';
import { notFound, Problem, problemResponse } from './problem.ts';
import {
  checkedCount,
  checkedKey,
  checkedName,
  cursorOf,
  type ListQuery,
  listQueryIn,
  newServerIn,
  relabellingIn,
} from './rules.ts';
import type { Cause, CloudServer } from './server.ts';
import { Servers } from './servers.ts';

/** Clock, timers and random behaviour of the model. */
export interface CloudEnvironment {
  /** Milliseconds since 1970. */
  now(): number;
  uuid(): string;
  after(ms: number, act: () => void): void;
  /** Time from the create request until the server runs. */
  bootMs(): number;
  /** Time from the delete request until the server is gone. */
  wipeMs(): number;
  /** Whether the next created server fails to boot. */
  bootFails(): boolean;
  /** Age of the state that a list shows, in milliseconds. */
  lagMs(): number;
  /** Maximum page size, even if the request has a larger limit. 1,000 in the real cloud. */
  readonly maxPageSize: number;
  /** Adds an entry to the trace. */
  note(what: string): void;
}

export interface CloudOptions {
  readonly environment: CloudEnvironment;
  /** API key that every request must carry. */
  readonly apiKey: string;
}

/** Interval between changes of a server's CPU utilization. */
const CPU_MS = 20_000;

const SERVER = /^\/servers\/([^/]+)$/;
const STATUS = /^\/servers\/([^/]+)\/status$/;
const CHECK = /^\/check\/([^/]+)$/;

/**
 * Model of the private cloud's HTTP API. `test/cloud-differential` sends the same requests to the model and to the real
 * cloud, and compares the responses and the remaining servers.
 *
 * Difference from the real cloud: lists may show state that is some seconds old, as the lists of large clouds do.
 *
 * Not modelled: TLS, metrics, the OpenAPI document, `/faults`, the expiry of idempotency keys after a week, the message
 * of a failed deletion, and the texts of schema violations.
 */
export class Cloud implements ModelServer {
  readonly servers: Servers;
  /** Whether a proxy answers every request with 502, as if the cloud were unreachable. */
  outOfOrder = false;
  readonly #environment: CloudEnvironment;
  readonly #authorization: string;
  readonly #prohibited = new Map<string, string | undefined>();
  #stillFromMs = Number.POSITIVE_INFINITY;

  constructor({ environment, apiKey }: CloudOptions) {
    this.#environment = environment;
    this.#authorization = `Bearer ${apiKey}`;
    this.servers = new Servers(() => environment.now());
    this.servers.listen(({ before, after, cause }) => {
      const { id = '', name } = after ?? before ?? {};
      environment.note(
        `${id} (${name}) ${after === undefined ? 'is gone' : `is ${after.state}`}, by ${cause}`,
      );
    });
  }

  /** Rejects new servers of this name, ignoring case, until `allow` is called. */
  prohibit(name: string, reason?: string): void {
    this.#prohibited.set(name.toLowerCase(), reason);
  }

  allow(name: string): void {
    this.#prohibited.delete(name.toLowerCase());
  }

  isProhibited(name: string): boolean {
    return this.#prohibited.has(name.toLowerCase());
  }

  /** Freezes the CPU utilization of all servers at its current value. */
  keepStill(): void {
    this.#stillFromMs = this.#environment.now();
  }

  /** Adds a running server on behalf of a third party. */
  add(wanted: NewServer): CloudServer {
    return this.servers.add(this.#environment.uuid(), wanted, undefined, 'running', 'somebody');
  }

  /** Returns the API representation of a server. */
  representation(server: CloudServer): Server {
    return representationOf(server, cpuOf(server, Math.min(this.#environment.now(), this.#stillFromMs)));
  }

  receive({ method, path, headers, body }: ModelRequest): ModelResponse {
    if (this.outOfOrder) return this.reject(500);
    try {
      return this.#respond(method, path, headers, body);
    } catch (error) {
      if (error instanceof Problem) return problemResponse(error);
      throw error;
    }
  }

  reject(status: 429 | 500, retryAfterSeconds = 1): BufferedResponse {
    if (status === 429) {
      const response = problemResponse(new Problem(429, 'TOO_MANY_REQUESTS', 'Too many requests.'));
      return { ...response, headers: { 'retry-after': String(retryAfterSeconds) } };
    }
    // Some proxies echo request headers in their error pages. The client must not include the API key in its errors.
    return { status: 502, body: `<h1>Bad gateway</h1><pre>authorization: ${this.#authorization}</pre>` };
  }

  /** Starts the deletion of a server. @param cause initiator of the deletion */
  beginDelete(id: string, cause: Cause): void {
    const server = this.#existing(id);
    if (server.state === 'deleting') return;
    const { message: _, ...rest } = server;
    this.servers.replace(server, { ...rest, state: 'deleting' }, cause);
    this.#environment.after(this.#environment.wipeMs(), () => {
      const now = this.servers.get(id);
      if (now !== undefined) this.servers.remove(now, 'itself');
    });
  }

  #respond(
    method: string,
    path: string,
    headers: ModelRequest['headers'],
    body: string | undefined,
  ): BufferedResponse {
    const [place = '', query = ''] = path.split('?', 2);
    const authorize = () => {
      if (headers.authorization === this.#authorization) return;
      const how = 'Send `Authorization: Bearer <API key>` with one of the keys of this cloud.';
      throw new Problem(401, 'UNAUTHORIZED', how);
    };
    if (place === '/servers' && method === 'GET') {
      authorize();
      return jsonResponse(200, this.#page(listQueryIn(query)));
    }
    if (place === '/servers' && method === 'POST') {
      authorize();
      return this.#create(newServerIn(body), checkedKey(headers['idempotency-key']));
    }
    const id = SERVER.exec(place)?.[1];
    if (id !== undefined && (method === 'GET' || method === 'DELETE' || method === 'PATCH')) {
      authorize();
      return this.#one(method, decodeURIComponent(id), body);
    }
    const observed = STATUS.exec(place)?.[1];
    if (observed !== undefined && method === 'GET') {
      authorize();
      const { state, cpuUtilization, message } = this.representation(
        this.#existing(decodeURIComponent(observed)),
      );
      return jsonResponse(200, { state, cpuUtilization, message });
    }
    const name = CHECK.exec(place)?.[1];
    if (name !== undefined && method === 'GET') {
      authorize();
      const wanted = checkedName(decodeURIComponent(name));
      this.#check(wanted);
      return jsonResponse(200, { name: wanted, available: true });
    }
    throw new Problem(
      404,
      'NO_SUCH_PATH',
      'No operation exists at this path. GET /openapi.json lists all operations.',
    );
  }

  #one(method: 'GET' | 'DELETE' | 'PATCH', id: string, body: string | undefined): BufferedResponse {
    if (method === 'DELETE') {
      this.beginDelete(id, 'request');
      return { status: 204, body: '' };
    }
    if (method === 'PATCH') this.#relabel(id, body);
    return jsonResponse(200, this.representation(this.#existing(id)));
  }

  #relabel(id: string, body: string | undefined): void {
    const changes = relabellingIn(body);
    const server = this.#existing(id);
    const labels: Record<string, string> = { ...server.labels };
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) delete labels[key];
      else labels[key] = value;
    }
    if (!same(labels, server.labels))
      this.servers.replace(server, { ...server, labels: checkedCount(labels) }, 'request');
  }

  #create(wanted: NewServer, key: string | undefined): BufferedResponse {
    // Checks the idempotency key before the name: when a client retries a create, the name is already taken by the
    // client's own server.
    const known = key === undefined ? undefined : this.servers.known(key, wanted);
    if (known?.is === 'same') return jsonResponse(200, this.representation(known.server));
    if (known?.is === 'reused')
      throw new Problem(
        422,
        'IDEMPOTENCY_KEY_REUSED',
        'This Idempotency-Key was already used with a different body. Use a new key to create another server.',
      );
    if (known !== undefined)
      throw new Problem(
        410,
        'SERVER_GONE',
        `Server ${known.id}, created with this Idempotency-Key, was deleted. Use a new key to create a new server.`,
        known.id,
      );
    this.#check(wanted.name);
    const { after, bootMs, bootFails, uuid } = this.#environment;
    const server = this.servers.add(uuid(), wanted, key, 'building', 'request');
    const fails = bootFails();
    after(bootMs(), () => {
      const now = this.servers.get(server.id);
      if (now?.state !== 'building') return;
      if (fails) this.fail(now.id, 'simulated boot failure', 'itself');
      else this.servers.replace(now, { ...now, state: 'running' }, 'itself');
    });
    return jsonResponse(201, this.representation(server));
  }

  /** Marks a server as failed. The server continues to exist. */
  fail(id: string, message: string, cause: Cause): void {
    const server = this.#existing(id);
    this.servers.replace(server, { ...server, state: 'failed', message }, cause);
  }

  #check(name: string): void {
    const problem = this.nameProblem(name);
    if (problem !== undefined) throw problem;
  }

  /** Returns why a name is not available now; undefined if the name is available. */
  nameProblem(name: string): Problem | undefined {
    if (this.isProhibited(name)) {
      const reason = this.#prohibited.get(name.toLowerCase());
      const why = reason === undefined ? '' : `: ${reason}`;
      const detail = `The name "${name}" is prohibited${why}. Choose another name.`;
      return new Problem(403, 'PROHIBITED_NAME', detail);
    }
    const holder = this.servers.named(name);
    if (holder === undefined) return undefined;
    const [state, remedy] =
      holder.state === 'deleting'
        ? [', which is being deleted', 'wait until the deletion has finished']
        : ['', 'delete that server'];
    const detail = `The name "${name}" is taken by the server ${holder.id}${state}. Choose another name, or ${remedy}.`;
    return new Problem(409, 'NAME_TAKEN', detail, holder.id);
  }

  #page({ limit, after, name, selectors }: ListQuery): object {
    const lag = this.#environment.lagMs();
    const then = this.#environment.now() - lag;
    const pageSize = Math.min(limit, this.#environment.maxPageSize);
    const items: Server[] = [];
    let last = 0;
    for (const server of lag === 0 ? this.servers.all() : this.servers.at(then)) {
      if (server.seq <= after || (name !== undefined && server.name !== name)) continue;
      const { labels } = server;
      if (
        !selectors.every(
          ({ key, value }) => Object.hasOwn(labels, key) && (value === undefined || labels[key] === value),
        )
      )
        continue;
      if (items.length === pageSize) return { items, next: cursorOf(last) };
      items.push(representationOf(server, cpuOf(server, Math.min(then, this.#stillFromMs))));
      last = server.seq;
    }
    return { items };
  }

  #existing(id: string): CloudServer {
    const server = this.servers.get(id);
    if (server === undefined) throw notFound(id);
    return server;
  }
}

function cpuOf({ seq, state }: CloudServer, atMs: number): number {
  return state === 'running' ? (seq * 37 + Math.floor(atMs / CPU_MS) * 29) % 101 : 0;
}

function representationOf(
  { id, name, labels, state, message, createdAt }: CloudServer,
  cpuUtilization: number,
): Server {
  return { id, name, labels, state, ...(message !== undefined && { message }), cpuUtilization, createdAt };
}

function jsonResponse(status: number, content: unknown): BufferedResponse {
  return { status, body: JSON.stringify(content) };
}
