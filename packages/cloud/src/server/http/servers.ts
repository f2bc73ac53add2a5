import { randomUUID } from 'node:crypto';
import type { LabelChanges, NewServer, Server, ServerStatus } from '../../api/server.ts';
import type { Machines } from '../machines/machines.ts';
import type { ProhibitedNames } from '../names/prohibited-names.ts';
import type { StoredServer } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { Problem } from './problems.ts';

export interface ServersOptions {
  readonly store: Store;
  readonly machines: Pick<Machines, 'attend' | 'cpuUtilizationOf'>;
  readonly names: Pick<ProhibitedNames, 'prohibition'>;
}

/** As `Labels` of the schemas has it. */
const MOST_LABELS = 64;

export interface Query {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly name?: string | undefined;
  /** `key=value` or `key` */
  readonly label?: readonly string[] | undefined;
}

export interface ServerPage {
  readonly items: readonly Server[];
  readonly next?: string;
}

/** What the API does, without its HTTP. All of it is synchronous, so that no request sees half of another. */
export class Servers {
  readonly #options: ServersOptions;

  constructor(options: ServersOptions) {
    this.#options = options;
  }

  /** @throws Problem unless a server could be called that */
  check(name: string): void {
    const prohibition = this.#options.names.prohibition(name);
    if (prohibition !== undefined) {
      const why = prohibition.reason === undefined ? '' : `: ${prohibition.reason}`;
      throw new Problem('PROHIBITED_NAME', `The name "${name}" is prohibited${why}. Choose another name.`);
    }
    const holder = this.#options.store.findByName(name);
    if (holder === undefined) return;
    const until = holder.state === 'deleting' ? ', which is being deleted' : '';
    throw new Problem(
      'NAME_TAKEN',
      `The name "${name}" is taken by the server ${holder.id}${until}. Choose another name, or delete that server.`,
      { serverId: holder.id },
    );
  }

  create(wanted: NewServer, key: string | undefined): { readonly isNew: boolean; readonly server: Server } {
    const { store, machines } = this.#options;
    // Before the name is looked at: a repetition finds its own server there, and gets what it got before.
    const known = key === undefined ? undefined : store.known(key, wanted);
    if (known?.is === 'same') return { isNew: false, server: this.#shown(known.server) };
    if (known?.is === 'reused') {
      throw new Problem(
        'IDEMPOTENCY_KEY_REUSED',
        'This Idempotency-Key came with another body before. A key stands for one server: take a new key for another.',
      );
    }
    if (known?.is === 'gone') {
      throw new Problem(
        'SERVER_GONE',
        `The server ${known.serverId} of this Idempotency-Key was deleted. Take a new key for a new server.`,
        { serverId: known.serverId },
      );
    }
    this.check(wanted.name);
    const server = store.create(randomUUID(), wanted, key);
    machines.attend(server.id);
    return { isNew: true, server: this.#shown(server) };
  }

  page({ limit, cursor, name, label = [] }: Query): ServerPage {
    const labels = label.map((selector) => {
      const at = selector.indexOf('=');
      return at === -1 ? { key: selector } : { key: selector.slice(0, at), value: selector.slice(at + 1) };
    });
    // One more than asked for tells whether there is a next page.
    const found = this.#options.store.page({ after: placeIn(cursor), limit: limit + 1, name, labels });
    const items = found.slice(0, limit);
    const last = items.at(-1);
    return {
      items: items.map((server) => this.#shown(server)),
      ...(found.length > limit && last !== undefined && { next: cursorOf(last) }),
    };
  }

  get(id: string): Server {
    return this.#shown(this.#existing(id));
  }

  status(id: string): ServerStatus {
    const { state, cpuUtilization, message } = this.get(id);
    return { state, cpuUtilization, ...(message !== undefined && { message }) };
  }

  relabel(id: string, changes: LabelChanges): Server {
    const labels: Record<string, string> = { ...this.#existing(id).labels };
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) delete labels[key];
      else labels[key] = value;
    }
    if (Object.keys(labels).length > MOST_LABELS)
      throw new Problem(
        'INVALID_REQUEST',
        `A server has at most ${MOST_LABELS} labels. Take some away first.`,
      );
    return this.#shown(this.#options.store.relabel(id, labels));
  }

  delete(id: string): void {
    this.#existing(id);
    this.#options.store.beginDelete(id);
    this.#options.machines.attend(id);
  }

  #existing(id: string): StoredServer {
    const server = this.#options.store.find(id);
    if (server !== undefined) return server;
    throw new Problem(
      'NOT_FOUND',
      `There is no server ${id}. It may have been deleted; GET /servers lists those there are.`,
    );
  }

  #shown(server: StoredServer): Server {
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

/** Decimal, so that the pattern in the document describes exactly the cursors that are accepted. */
function cursorOf({ seq }: StoredServer): string {
  return String(seq);
}

/** @param cursor as its schema allows it */
function placeIn(cursor: string | undefined): number {
  return cursor === undefined ? 0 : Number(cursor);
}
