import type { DatabaseServer } from '../database/server.ts';
import type { TableRow } from '../database/table.ts';
import type { Simulation } from '../world/simulation.ts';
import { EPOCH_MS } from '../world/world.ts';
import { urnOf } from './timeline.ts';

/** Status of a row while its VM does not exist yet. The mirror never writes this status. */
export const INSTANTIATING = 'INSTANTIATING';

const DAY_MS = 86_400_000;

export const SSVIRT_ACTIONS = [
  'a row was inserted',
  'a row without a namespace was inserted',
  'a duplicate row was inserted',
  'a row of another vApp was inserted',
  'a status was written by the API server',
  'a row was soft-deleted',
  'a row was inserted again under another id',
] as const;

export interface NewRow {
  readonly vmName: string;
  readonly namespace: string | null;
  /** UUID of the vApp. */
  readonly vapp: string;
  readonly status?: string | null;
  /** Age of the row at its insertion, for rows that existed before the mirror was installed. */
  readonly ageMs?: number;
}

/** Model of SSVirt's API server, which inserts and soft-deletes rows, and writes its own statuses. */
export class Ssvirt {
  readonly #simulation: Simulation;
  readonly #database: DatabaseServer;
  #rows = 0;

  constructor(simulation: Simulation, database: DatabaseServer) {
    this.#simulation = simulation;
    this.#database = database;
  }

  /** Inserts rows that existed before the mirror was installed. */
  setUp(vapps: readonly [string, string, string], statuses: readonly string[]): void {
    const { choices } = this.#simulation;
    const [own, other] = vapps;
    const ageMs = DAY_MS;
    for (const status of statuses)
      this.insert({ vmName: `old-${status.toLowerCase()}`, namespace: 'red', vapp: own, status, ageMs });
    this.insert({ vmName: 'web', namespace: 'red', vapp: other, status: INSTANTIATING, ageMs });
    this.insert({ vmName: 'never', namespace: 'red', vapp: own, status: null, ageMs });
    const removed = this.insert({ vmName: 'web', namespace: 'red', vapp: own, status: 'POWERED_ON', ageMs });
    this.#database.change(removed, (row) => row && { ...row, deletedAt: this.#now() });
    if (choices.oneIn(2))
      this.insert({ vmName: 'db', namespace: 'red', vapp: other, status: 'POWERED_ON', ageMs });
  }

  /** Inserts a row. @returns its id */
  insert({ vmName, namespace, vapp, status = INSTANTIATING, ageMs = 0 }: NewRow): string {
    this.#count('a row was inserted');
    if (namespace === null) this.#count('a row without a namespace was inserted');
    this.#rows += 1;
    const id = `urn:vcloud:vm:${String((this.#rows * 7) % 100).padStart(2, '0')}-${this.#rows}`;
    const at = this.#now() - ageMs;
    const row: TableRow = {
      id,
      name: `VM ${vmName}`,
      vappId: urnOf(vapp),
      vmName,
      namespace,
      status,
      createdAt: at,
      updatedAt: at,
      deletedAt: null,
    };
    this.#simulation.note('ssvirt', `inserts ${id} for ${namespace}/${vmName} of ${vapp}`);
    this.#database.change(id, () => row);
    return id;
  }

  /**
   * Writes a status, as SSVirt's API server does when a user powers a VM on or off. The clock of that server may be
   * ahead.
   */
  write(id: string, status: string): void {
    const aheadMs = this.#simulation.choices.oneIn(4) ? 5_000 : 0;
    this.#database.change(id, (row) => {
      if (row === undefined || row.deletedAt !== null) return undefined;
      this.#count('a status was written by the API server');
      this.#simulation.note('ssvirt', `sets ${id} to ${status}`);
      return { ...row, status, updatedAt: Math.max(this.#now() + aheadMs, row.updatedAt ?? 0) };
    });
  }

  softDelete(id: string): void {
    this.#database.change(id, (row) => {
      if (row === undefined || row.deletedAt !== null) return undefined;
      this.#count('a row was soft-deleted');
      this.#simulation.note('ssvirt', `soft-deletes ${id}`);
      return { ...row, deletedAt: this.#now() };
    });
  }

  /** Soft-deletes a row and inserts it again under another id. */
  replace(id: string): void {
    const row = this.#database.table.get(id);
    if (row === undefined || row.deletedAt !== null || row.vmName === null) return;
    this.#count('a row was inserted again under another id');
    this.softDelete(id);
    this.insert({ vmName: row.vmName, namespace: row.namespace, vapp: vappOf(row) });
  }

  /** Inserts a second row for the VM of a row. */
  duplicate(id: string, status: string): void {
    const row = this.#database.table.get(id);
    if (row === undefined || row.deletedAt !== null || row.vmName === null) return;
    this.#count('a duplicate row was inserted');
    const ageMs = this.#simulation.choices.oneIn(2) ? DAY_MS : 0;
    this.insert({ vmName: row.vmName, namespace: row.namespace, vapp: vappOf(row), status, ageMs });
  }

  /** Inserts a row with the same name and namespace as an existing row, but for another vApp. */
  insertForeign(id: string, vapp: string, status: string): void {
    const row = this.#database.table.get(id);
    if (row === undefined || row.vmName === null || row.namespace === null) return;
    this.#count('a row of another vApp was inserted');
    this.insert({ vmName: row.vmName, namespace: row.namespace, vapp, status });
  }

  #now(): number {
    return EPOCH_MS + Math.round(this.#simulation.schedule.now);
  }

  #count(what: (typeof SSVIRT_ACTIONS)[number]): void {
    this.#simulation.counts.add(what);
  }
}

function vappOf({ vappId }: TableRow): string {
  return vappId.replace(/^.*:/, '');
}
