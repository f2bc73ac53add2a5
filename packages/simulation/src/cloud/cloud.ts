import type { NewServer, Server } from '@vmwright/cloud';
import { same } from '../apiserver/json.ts';
import type { Answer, Arrived, ModelServer, WholeAnswer } from '../world/server.ts';
import { notFound, Problem, problemAnswer } from './problem.ts';
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

export interface CloudEnvironment {
  /** Milliseconds since 1970. */
  now(): number;
  uuid(): string;
  after(ms: number, act: () => void): void;
  /** How long the disk takes to make a machine … */
  bootMs(): number;
  /** … and to wipe it. */
  wipeMs(): number;
  /** Whether a machine that is made does not come up. */
  bootFails(): boolean;
  /** How old the state is that a list shows. */
  lagMs(): number;
  /** Beyond which a page never goes, whatever is asked for. The real cloud has 1,000. */
  readonly longestPage: number;
  note(what: string): void;
}

export interface CloudOptions {
  readonly environment: CloudEnvironment;
  /** That every request must carry. */
  readonly apiKey: string;
}

/** How long the use of a CPU stays the same, while it changes at all. */
const CPU_MS = 20_000;

const SERVER = /^\/servers\/([^/]+)$/;
const STATUS = /^\/servers\/([^/]+)\/status$/;
const CHECK = /^\/check\/([^/]+)$/;

/**
 * A model of the private cloud, behind its own HTTP and JSON. Held to the real one by `test/cloud-differential`: the same
 * requests of the real client get the same answers and leave the same servers.
 *
 * Beyond the real one, lists may show what was some seconds ago, as those of large clouds do.
 * Left out: TLS, metrics, its document, `/faults`, keys that expire after a week, what a machine says of a deletion that
 * does not succeed, and the words for what breaks a rule of its schemas.
 */
export class Cloud implements ModelServer {
  readonly servers: Servers;
  /** Whether somebody in front of it answers that it cannot be reached. */
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

  /** From now on nobody may have the name, in whatever case. */
  prohibit(name: string, reason?: string): void {
    this.#prohibited.set(name.toLowerCase(), reason);
  }

  allow(name: string): void {
    this.#prohibited.delete(name.toLowerCase());
  }

  isProhibited(name: string): boolean {
    return this.#prohibited.has(name.toLowerCase());
  }

  /** From now on all machines use as much of their CPU as they do now. */
  keepStill(): void {
    this.#stillFromMs = this.#environment.now();
  }

  /** Puts a server there that runs, as somebody else would. */
  add(wanted: NewServer): CloudServer {
    return this.servers.add(this.#environment.uuid(), wanted, undefined, 'running', 'somebody');
  }

  /** What it shows of a server now. */
  shown(server: CloudServer): Server {
    return shown(server, cpuOf(server, Math.min(this.#environment.now(), this.#stillFromMs)));
  }

  receive({ method, path, headers, body }: Arrived): Answer {
    if (this.outOfOrder) return this.refuse(500);
    try {
      return this.#answer(method, path, headers, body);
    } catch (error) {
      if (error instanceof Problem) return problemAnswer(error);
      throw error;
    }
  }

  refuse(status: 429 | 500, retryAfterSeconds = 1): WholeAnswer {
    if (status === 429) {
      const answer = problemAnswer(new Problem(429, 'TOO_MANY_REQUESTS', 'Too many requests.'));
      return { ...answer, headers: { 'retry-after': String(retryAfterSeconds) } };
    }
    // As proxies do that tell a stranger what they were asked: it must not come any further.
    return { status: 502, body: `<h1>Bad gateway</h1><pre>authorization: ${this.#authorization}</pre>` };
  }

  /** Begins a deletion. @param cause whose it is */
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

  #answer(method: string, path: string, headers: Arrived['headers'], body: string | undefined): WholeAnswer {
    const [place = '', query = ''] = path.split('?', 2);
    const authorize = () => {
      if (headers.authorization === this.#authorization) return;
      const how = 'Send `Authorization: Bearer <API key>` with one of the keys of this cloud.';
      throw new Problem(401, 'UNAUTHORIZED', how);
    };
    if (place === '/servers' && method === 'GET') {
      authorize();
      return answer(200, this.#page(listQueryIn(query)));
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
      const { state, cpuUtilization, message } = this.shown(this.#existing(decodeURIComponent(observed)));
      return answer(200, { state, cpuUtilization, message });
    }
    const name = CHECK.exec(place)?.[1];
    if (name !== undefined && method === 'GET') {
      authorize();
      const wanted = checkedName(decodeURIComponent(name));
      this.#check(wanted);
      return answer(200, { name: wanted, available: true });
    }
    throw new Problem(
      404,
      'NO_SUCH_PATH',
      'No operation exists at this path. GET /openapi.json lists all operations.',
    );
  }

  #one(method: 'GET' | 'DELETE' | 'PATCH', id: string, body: string | undefined): WholeAnswer {
    if (method === 'DELETE') {
      this.beginDelete(id, 'request');
      return { status: 204, body: '' };
    }
    if (method === 'PATCH') this.#relabel(id, body);
    return answer(200, this.shown(this.#existing(id)));
  }

  #relabel(id: string, body: string | undefined): void {
    const asked = relabellingIn(body);
    const server = this.#existing(id);
    const labels: Record<string, string> = { ...server.labels };
    for (const [key, value] of Object.entries(asked)) {
      if (value === null) delete labels[key];
      else labels[key] = value;
    }
    if (!same(labels, server.labels))
      this.servers.replace(server, { ...server, labels: checkedCount(labels) }, 'request');
  }

  #create(wanted: NewServer, key: string | undefined): WholeAnswer {
    // Before the name is looked at: a repetition finds its own server there, and gets what it got before.
    const known = key === undefined ? undefined : this.servers.known(key, wanted);
    if (known?.is === 'same') return answer(200, this.shown(known.server));
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
    return answer(201, this.shown(server));
  }

  /** The machine of a server comes to its end, and the server stays. */
  fail(id: string, message: string, cause: Cause): void {
    const server = this.#existing(id);
    this.servers.replace(server, { ...server, state: 'failed', message }, cause);
  }

  #check(name: string): void {
    const refusal = this.refusalOf(name);
    if (refusal !== undefined) throw refusal;
  }

  /** Why a name cannot be had now. */
  refusalOf(name: string): Problem | undefined {
    if (this.isProhibited(name)) {
      const reason = this.#prohibited.get(name.toLowerCase());
      const why = reason === undefined ? '' : `: ${reason}`;
      const detail = `The name "${name}" is prohibited${why}. Choose another name.`;
      return new Problem(403, 'PROHIBITED_NAME', detail);
    }
    const holder = this.servers.named(name);
    if (holder === undefined) return undefined;
    const until = holder.state === 'deleting' ? ', which is being deleted' : '';
    const detail = `The name "${name}" is taken by the server ${holder.id}${until}. Choose another name, or delete that server.`;
    return new Problem(409, 'NAME_TAKEN', detail, holder.id);
  }

  #page({ limit, after, name, selectors }: ListQuery): object {
    const lag = this.#environment.lagMs();
    const then = this.#environment.now() - lag;
    const most = Math.min(limit, this.#environment.longestPage);
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
      if (items.length === most) return { items, next: cursorOf(last) };
      items.push(shown(server, cpuOf(server, Math.min(then, this.#stillFromMs))));
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

function shown({ id, name, labels, state, message, createdAt }: CloudServer, cpuUtilization: number): Server {
  return { id, name, labels, state, ...(message !== undefined && { message }), cpuUtilization, createdAt };
}

function answer(status: number, content: unknown): WholeAnswer {
  return { status, body: JSON.stringify(content) };
}
