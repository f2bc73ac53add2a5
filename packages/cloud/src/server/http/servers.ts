import { randomUUID } from 'node:crypto';
import type { LabelChanges, NewServer, Server, ServerStatus } from '../../api/server.ts';
import type { Machines } from '../machines/machines.ts';
import type { ProhibitedNames } from '../names/prohibited-names.ts';
import type { StoredServer } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { Problem } from './problems.ts';

export interface ServersOptions {
  readonly store: Store;
  readonly machines: Pick<Machines, 'enqueue' | 'cpuUtilizationOf'>;
  readonly names: Pick<ProhibitedNames, 'match'>;
}

/** Maximum number of labels of a server, as in `maxProperties` of the schema `Labels`. */
const MAX_LABELS = 64;

export interface ListQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly name?: string | undefined;
  /** Selectors `key=value` or `key`; a server must match all of them. */
  readonly label?: readonly string[] | undefined;
}

export interface ServerPage {
  readonly items: readonly Server[];
  readonly next?: string;
}

/** The API's operations, without HTTP. All methods are synchronous, so that requests never interleave. */
export class Servers {
  readonly #options: ServersOptions;

  constructor(options: ServersOptions) {
    this.#options = options;
  }

  /** @throws Problem if the name is prohibited or taken */
  check(name: string): void {
    const rule = this.#options.names.match(name);
    if (rule !== undefined) {
      const why = rule.reason === undefined ? '' : `: ${rule.reason}`;
      throw new Problem('PROHIBITED_NAME', `The name "${name}" is prohibited${why}. Choose another name.`);
    }
    const holder = this.#options.store.findByName(name);
    if (holder === undefined) return;
    const [state, remedy] =
      holder.state === 'deleting'
        ? [', which is being deleted', 'wait until the deletion has finished']
        : ['', 'delete that server'];
    throw new Problem(
      'NAME_TAKEN',
      `The name "${name}" is taken by the server ${holder.id}${state}. Choose another name, or ${remedy}.`,
      { serverId: holder.id },
    );
  }

  create(wanted: NewServer, key: string | undefined): { readonly isNew: boolean; readonly server: Server } {
    const { store, machines } = this.#options;
    // The key is looked up before the name: on a retry, the name is taken by the key's own server, which must be
    // returned.
    const lookup = key === undefined ? undefined : store.lookupKey(key, wanted);
    if (lookup?.result === 'same') return { isNew: false, server: this.#toApi(lookup.server) };
    if (lookup?.result === 'reused') {
      throw new Problem(
        'IDEMPOTENCY_KEY_REUSED',
        'This Idempotency-Key was already used with a different body. Use a new key to create another server.',
      );
    }
    if (lookup?.result === 'gone') {
      throw new Problem(
        'SERVER_GONE',
        `Server ${lookup.serverId}, created with this Idempotency-Key, was deleted. Use a new key to create a new server.`,
        { serverId: lookup.serverId },
      );
    }
    this.check(wanted.name);
    const server = store.create(randomUUID(), wanted, key);
    machines.enqueue(server.id);
    return { isNew: true, server: this.#toApi(server) };
  }

  page({ limit, cursor, name, label = [] }: ListQuery): ServerPage {
    const labels = label.map((selector) => {
      const equals = selector.indexOf('=');
      return equals === -1
        ? { key: selector }
        : { key: selector.slice(0, equals), value: selector.slice(equals + 1) };
    });
    // Fetches one server more than the limit to find out whether there is a next page.
    const found = this.#options.store.page({ after: parseCursor(cursor), limit: limit + 1, name, labels });
    const items = found.slice(0, limit);
    const last = items.at(-1);
    return {
      items: items.map((server) => this.#toApi(server)),
      ...(found.length > limit && last !== undefined && { next: toCursor(last) }),
    };
  }

  get(id: string): Server {
    return this.#toApi(this.#require(id));
  }

  status(id: string): ServerStatus {
    const { state, cpuUtilization, message } = this.get(id);
    return { state, cpuUtilization, ...(message !== undefined && { message }) };
  }

  relabel(id: string, changes: LabelChanges): Server {
    const labels: Record<string, string> = { ...this.#require(id).labels };
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) delete labels[key];
      else labels[key] = value;
    }
    if (Object.keys(labels).length > MAX_LABELS)
      throw new Problem(
        'INVALID_REQUEST',
        `A server has at most ${MAX_LABELS} labels. Remove some labels first.`,
      );
    return this.#toApi(this.#options.store.relabel(id, labels));
  }

  delete(id: string): void {
    this.#require(id);
    this.#options.store.beginDelete(id);
    this.#options.machines.enqueue(id);
  }

  #require(id: string): StoredServer {
    const server = this.#options.store.find(id);
    if (server !== undefined) return server;
    throw new Problem(
      'NOT_FOUND',
      `Server ${id} does not exist. It may have been deleted; GET /servers lists the existing servers.`,
    );
  }

  #toApi(server: StoredServer): Server {
    const { id, name, labels, state, message, createdAt } = server;
    return {
      id,
      name,
      labels,
      state,
      ...(message !== undefined && { message }),
      cpuUtilization: this.#options.machines.cpuUtilizationOf(server),
      createdAt: new Date(createdAt).toISOString(),
    };
  }
}

/**
 * Returns the cursor of the page that begins after this server. A cursor is a decimal number, so that the schema of the
 * API can describe it with a pattern.
 */
function toCursor({ seq }: StoredServer): string {
  return String(seq);
}

/** @param cursor already validated by its schema */
function parseCursor(cursor: string | undefined): number {
  return cursor === undefined ? 0 : Number(cursor);
}
