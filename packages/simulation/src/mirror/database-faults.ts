import type { DatabaseServer } from '../database/server.ts';
import type { TableRow } from '../database/table.ts';
import { atRandomTimes } from '../scenario/random-times.ts';
import type { Simulation } from '../world/simulation.ts';

export const DATABASE_ACTIONS = [
  'the database was down',
  'the database was read-only',
  'the database had no free connections',
  'the database failed over',
  'a fail-over lost commits',
  'a row was locked by another transaction',
  'a constraint rejected a row for some time',
] as const;

type Action = (typeof DATABASE_ACTIONS)[number];

const MAX_ACTIONS = 5;
const OUTAGE_MS = 40_000;
const LOCKED_MS = 15_000;
/** Maximum age of the commits that a fail-over loses. */
const LOST_MS = 3_000;

/** Injects faults into the database itself, in addition to the faults of the connections to it. */
export class DatabaseFaults {
  readonly #simulation: Simulation;
  readonly #database: DatabaseServer;
  readonly #lasting = new Set<() => void>();
  readonly #rejected: Set<string>;

  /** @param rejected ids of the rows that a constraint rejects */
  constructor(simulation: Simulation, database: DatabaseServer, rejected: Set<string>) {
    this.#simulation = simulation;
    this.#database = database;
    this.#rejected = rejected;
  }

  plan(ms: number): void {
    atRandomTimes(this.#simulation, MAX_ACTIONS, ms, () => this.act());
  }

  act(): void {
    const { choices, network } = this.#simulation;
    if (!network.faulty) return;
    choices.one([
      () => this.lockRow(this.#oneRow()),
      () => this.lockRow(this.#oneRow()),
      () => this.#reject(this.#oneRow()),
      () => this.#outage(),
      () => this.#setReadOnly(),
      () => this.#fill(),
      () => this.failOver(),
    ])();
  }

  /** Ends all faults. */
  stop(): void {
    for (const end of this.#lasting) end();
    this.#lasting.clear();
    this.#rejected.clear();
  }

  failOver(): void {
    this.#note('the database failed over');
    const lost = this.#database.failOver(this.#simulation.choices.pick(LOST_MS));
    if (lost > 0) this.#note('a fail-over lost commits');
  }

  lockRow(row: TableRow | undefined): void {
    if (row === undefined) return;
    this.#note('a row was locked by another transaction', row.id);
    this.#last(LOCKED_MS, this.#database.lockRow(row.id));
  }

  #reject(row: TableRow | undefined): void {
    if (row === undefined) return;
    this.#note('a constraint rejected a row for some time', row.id);
    this.#rejected.add(row.id);
    const { schedule, choices } = this.#simulation;
    schedule.after(1_000 + choices.pick(2 * OUTAGE_MS), () => {
      if (this.#simulation.network.faulty) this.#rejected.delete(row.id);
    });
  }

  #outage(): void {
    this.#note('the database was down');
    this.#database.stop();
    this.#last(OUTAGE_MS, () => this.#database.start());
  }

  #setReadOnly(): void {
    this.#note('the database was read-only');
    this.#database.isReadOnly = true;
    this.#last(OUTAGE_MS, () => {
      this.#database.isReadOnly = false;
    });
  }

  #fill(): void {
    this.#note('the database had no free connections');
    this.#database.isFull = true;
    this.#last(OUTAGE_MS, () => {
      this.#database.isFull = false;
    });
  }

  #oneRow(): TableRow | undefined {
    const rows = this.#database.table.all().filter(({ deletedAt }) => deletedAt === null);
    return rows[this.#simulation.choices.pick(Math.max(rows.length, 1))];
  }

  #last(ms: number, end: () => void): void {
    const { schedule, choices } = this.#simulation;
    const once = () => {
      if (this.#lasting.delete(once)) end();
    };
    this.#lasting.add(once);
    schedule.after(1_000 + choices.pick(ms), once);
  }

  #note(what: Action, about = ''): void {
    this.#simulation.counts.add(what);
    this.#simulation.note('database', about === '' ? what : `${what}: ${about}`);
  }
}
