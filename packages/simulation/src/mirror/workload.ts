import type { Table, TableRow } from '../database/table.ts';
import type { Simulation } from '../world/simulation.ts';
import type { KubeVirt, VmRef } from './kubevirt.ts';
import { INSTANTIATING, type Ssvirt } from './ssvirt.ts';
import { urnOf } from './timeline.ts';

/** UUIDs of vApps. The first two belong to the namespace red, the third to blue. */
const RED = 'aaaaaaaa-0000-4000-8000-000000000001';
const RED_2 = 'aaaaaaaa-0000-4000-8000-000000000002';
const BLUE = 'bbbbbbbb-0000-4000-8000-000000000003';

interface Place extends VmRef {
  /** vApps that the VM can belong to. */
  readonly vapps: readonly [string, ...string[]];
  /** Whether another namespace has a VM with the same name and vApp label. */
  readonly isCopied?: boolean;
}

const PLACES: readonly Place[] = [
  { namespace: 'red', name: 'web', vapps: [RED, RED, RED_2] },
  { namespace: 'red', name: 'db', vapps: [RED] },
  { namespace: 'blue', name: 'web', vapps: [BLUE] },
  { namespace: 'red', name: 'copy', vapps: [RED], isCopied: true },
  { namespace: 'blue', name: 'copy', vapps: [RED], isCopied: true },
];
const FRESH: VmRef = { namespace: 'red', name: 'fresh' };

/** Statuses that SSVirt's API server writes itself, independently of the mirror. */
const API_STATUSES = ['POWERING_ON', 'POWERING_OFF', 'POWERED_ON', 'SUSPENDED'] as const;
/** Statuses of rows that existed before the mirror was installed. Some of the rows show VMs that are gone. */
const OLD_STATUSES = ['POWERED_ON', 'DELETED', 'SUSPENDED', 'UNRESOLVED'];

const MAX_API_ACTIONS = 6;
/** Maximum time from the creation of a VM until its row is inserted. */
const LATE_ROW_MS = 40_000;
/**
 * Maximum time from the re-creation of a VM until its row is inserted, in a run without resyncs. It is shorter
 * than `CLAIM_MS`, after which the VM takes over the row of its predecessor.
 */
const SOON_ROW_MS = 9_500;
/** Duration of the phase in which VMs keep changing, but no faults are injected. */
const CALM_MS = 45_000;

export interface WorkloadOptions {
  readonly simulation: Simulation;
  readonly kubevirt: KubeVirt;
  readonly ssvirt: Ssvirt;
  readonly table: Table;
  /** Whether resyncs are enabled. They correct rows that SSVirt's API server has changed without a change of the VM. */
  readonly isResynced: boolean;
}

/** Schedules the creation, changes and deletion of VMs and rows. */
export class Workload {
  readonly #options: WorkloadOptions;

  constructor(options: WorkloadOptions) {
    this.#options = options;
  }

  setUp(): void {
    this.#options.ssvirt.setUp([RED, RED_2, BLUE], OLD_STATUSES);
  }

  /** Schedules changes within the given number of milliseconds. */
  plan(ms: number): void {
    const { simulation, kubevirt, isResynced } = this.#options;
    const { choices } = simulation;
    for (const place of PLACES) if (!choices.oneIn(4)) this.#planLives(place, ms);
    if (!isResynced) return;
    for (let count = choices.pick(MAX_API_ACTIONS + 1); count > 0; count--)
      kubevirt.at(choices.pick(ms), () => this.#actOnRow());
  }

  #planLives(place: Place, ms: number): void {
    const { simulation, kubevirt } = this.#options;
    const { choices } = simulation;
    let at = choices.pick(ms / 3);
    for (let life = 0, lives = 1 + choices.pick(3); life < lives && at < ms; life++) {
      const vapp = choices.one(place.vapps);
      const isLabelled = place.isCopied === true || !choices.oneIn(4);
      kubevirt.at(at, () => kubevirt.create(place, isLabelled ? vapp : undefined));
      this.#planRow(place, vapp, isLabelled, at, life);
      for (let count = choices.pick(5); count > 0; count--) {
        at += choices.oneIn(3) ? choices.pick(ms / 3) : choices.pick(4_000);
        kubevirt.at(Math.min(at, ms), () => kubevirt.change(place));
      }
      at += choices.oneIn(2) ? choices.pick(ms / 3) : choices.pick(3_000);
      if (life === lives - 1 && !choices.oneIn(3)) break;
      const force = choices.oneIn(3);
      kubevirt.at(Math.min(at, ms), () => kubevirt.delete(place, force));
      at += force ? 300 + choices.pick(3_000) : 7_000 + choices.pick(8_000);
    }
  }

  #planRow(place: Place, vapp: string, isLabelled: boolean, createdAt: number, life: number): void {
    const { simulation, kubevirt, ssvirt, isResynced } = this.#options;
    const { choices } = simulation;
    if (choices.oneIn(6)) return; // the VM has no row, or takes over the row of its predecessor
    const isNull = isLabelled && place.isCopied !== true && choices.oneIn(6);
    const namespace = isNull ? null : place.namespace;
    const isEarly = choices.oneIn(3);
    // If a row has a status that the mirror writes, the mirror assumes that the row belongs to an earlier VM. In a run
    // without resyncs, such a row is inserted only for the first VM with a name, which has no earlier VM.
    const hasStatus = choices.oneIn(3) && (isResynced || life === 0) && isEarly;
    const status = hasStatus ? 'STOPPED' : choices.oneIn(6) ? null : INSTANTIATING;
    const late = life > 0 && !isResynced ? SOON_ROW_MS : choices.oneIn(2) ? LATE_ROW_MS : 2_000;
    const at = isEarly ? createdAt - choices.pick(5_000) : createdAt + choices.pick(late);
    kubevirt.at(at, () => {
      if (isResynced || !this.#hasRow(place, isLabelled ? vapp : undefined))
        ssvirt.insert({ vmName: place.name, namespace, vapp, status });
    });
  }

  /**
   * Whether the VM already has a row that is not soft-deleted and does not have the status DELETED. The mirror would
   * find a second row for the VM only in a resync.
   * @param vapp UUID in the VM's label; undefined without the label
   */
  #hasRow(place: VmRef, vapp: string | undefined): boolean {
    return this.#options.table
      .all()
      .some(
        ({ vmName, namespace, vappId, deletedAt, status }) =>
          vmName === place.name &&
          (namespace ?? place.namespace) === place.namespace &&
          (vapp === undefined || vappId === urnOf(vapp)) &&
          deletedAt === null &&
          status !== 'DELETED',
      );
  }

  #actOnRow(): void {
    const { simulation, ssvirt } = this.#options;
    const { choices } = simulation;
    const row = this.#oneRow();
    if (row === undefined) return;
    const status = choices.one(API_STATUSES);
    choices.one([
      () => ssvirt.write(row.id, status),
      () => ssvirt.write(row.id, status),
      () => ssvirt.softDelete(row.id),
      () => ssvirt.replace(row.id),
      () => ssvirt.duplicate(row.id, status),
      () => ssvirt.insertForeign(row.id, choices.one([RED_2, BLUE]), status),
    ])();
  }

  #oneRow(): TableRow | undefined {
    const names = PLACES.map(({ name }) => name);
    const rows = this.#options.table
      .all()
      .filter(({ deletedAt, vmName }) => deletedAt === null && names.includes(vmName ?? ''));
    return rows[this.#options.simulation.choices.pick(Math.max(rows.length, 1))];
  }

  /** Creates a VM with a row after the faults have stopped. */
  end(): void {
    const { kubevirt, ssvirt } = this.#options;
    kubevirt.create(FRESH, RED);
    ssvirt.insert({ vmName: FRESH.name, namespace: FRESH.namespace, vapp: RED });
  }

  /** Schedules changes of VMs for the phase without faults. @returns the duration of the phase in milliseconds */
  planCalm(): number {
    const { simulation, kubevirt, ssvirt, isResynced } = this.#options;
    const { choices } = simulation;
    for (const place of [FRESH, ...PLACES])
      for (let at = choices.pick(8_000); at < CALM_MS; at += 3_000 + choices.pick(12_000))
        kubevirt.at(at, () => kubevirt.change(place));
    if (choices.oneIn(2)) {
      kubevirt.at(CALM_MS / 3, () => kubevirt.delete(FRESH, true));
      kubevirt.at(CALM_MS / 2, () => kubevirt.create(FRESH, RED));
      kubevirt.at(CALM_MS / 2 + choices.pick(SOON_ROW_MS), () =>
        ssvirt.insert({ vmName: FRESH.name, namespace: FRESH.namespace, vapp: RED }),
      );
    }
    const row = this.#oneRow();
    if (isResynced && row !== undefined) kubevirt.at(choices.pick(CALM_MS), () => ssvirt.replace(row.id));
    return CALM_MS + 10_000;
  }
}
