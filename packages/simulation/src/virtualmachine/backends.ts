import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { type ImportBehaviour, snapshotSourceOf, startCdi } from '../kubevirt/cdi.ts';
import type { Component } from '../kubevirt/component.ts';
import { type SnapshotBehaviour, startProvisioner, startSnapshotter } from '../kubevirt/storage.ts';
import { startVirtController } from '../kubevirt/virt-controller.ts';
import { atRandomTimes } from '../scenario/random-times.ts';
import { controllerOf, textAt } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';

/** Counted faults. When many seeds are run, each fault must occur in at least one seed. */
export const BACKEND_FAULTS = [
  'an import was slow',
  'an import hung',
  'an import failed',
  'an importer restarted once',
  'an importer restarted too often',
  'a source was missing',
  'a clone failed',
  'a snapshot failed',
  'a snapshot was never ready',
  'a machine failed to start',
  'a backend restarted',
] as const;

type BackendFault = (typeof BACKEND_FAULTS)[number];

/** URLs of disk images: one with faults during imports, one that always works, and one that does not exist. */
export const SOURCES = {
  flaky: 'http://images.example/flaky',
  sound: 'http://images.example/sound',
  missing: 'http://images.example/missing',
} as const;

const IMPORTS: readonly [ImportBehaviour, ...ImportBehaviour[]] = [
  ...(['ok', 'ok', 'ok', 'ok', 'ok'] as const),
  ...(['slow', 'hang', 'fail', 'restart', 'restarts'] as const),
];
const COUNTED: Readonly<Partial<Record<ImportBehaviour, BackendFault>>> = {
  slow: 'an import was slow',
  hang: 'an import hung',
  fail: 'an import failed',
  restart: 'an importer restarted once',
  restarts: 'an importer restarted too often',
};
const CLONE_FAILS_ONE_IN = 12;
const SNAPSHOT_FAULT_ONE_IN = 8;
const START_FAILS_ONE_IN = 6;
const MAX_RESTARTS = 3;
const MAX_DOWN_MS = 15_000;

/** CDI, the snapshot controller, the provisioner and virt-controller, with faults until `calm` is called. */
export class Backends {
  readonly #simulation: Simulation;
  readonly #components: readonly Component[];
  readonly #imports = new Map<string, ImportBehaviour>();
  readonly #snapshots = new Map<string, SnapshotBehaviour>();
  #isCalm = false;

  constructor(simulation: Simulation, server: ApiServer) {
    this.#simulation = simulation;
    this.#components = [
      startCdi({ simulation, server, behaviourOf: (volume) => this.#importOf(volume) }),
      startProvisioner(simulation, server),
      startSnapshotter({ simulation, server, behaviourOf: (snapshot) => this.#snapshotOf(snapshot) }),
      startVirtController({ simulation, server, startFails: () => this.#startFails() }),
    ];
  }

  /** Whether no component has anything to do. */
  get isIdle(): boolean {
    return this.#components.every(({ isIdle }) => isIdle);
  }

  /** Schedules restarts within the given number of milliseconds. */
  plan(ms: number): void {
    const { choices, counts } = this.#simulation;
    atRandomTimes(this.#simulation, MAX_RESTARTS, ms, () => {
      const component = this.#components[choices.pick(this.#components.length)];
      counts.add('a backend restarted');
      component?.restart(500 + choices.pick(MAX_DOWN_MS));
    });
  }

  /**
   * Ends all faults. Imports and snapshots that hung make progress again. A missing source stays missing, but
   * orphaned imports from it succeed.
   */
  calm(): void {
    this.#isCalm = true;
    for (const component of this.#components) component.resync();
  }

  #importOf(volume: StoredObject): ImportBehaviour {
    const url = textAt(volume, 'spec', 'source', 'http', 'url') ?? '';
    // Once the faults have ended, an orphaned import succeeds although its source is missing. Otherwise, it would
    // restart forever, because no operator deletes it.
    if (url.startsWith(SOURCES.missing) && !(this.#isCalm && controllerOf(volume) === undefined)) {
      this.#simulation.counts.add('a source was missing');
      return 'missing';
    }
    if (this.#isCalm) return 'ok';
    const { uid = '' } = volume.metadata;
    const known = this.#imports.get(uid);
    if (known !== undefined) return known;
    const chosen = this.#chooseImport(url, snapshotSourceOf(volume) !== undefined);
    this.#imports.set(uid, chosen);
    return chosen;
  }

  #chooseImport(url: string, isClone: boolean): ImportBehaviour {
    const { choices, counts } = this.#simulation;
    if (isClone) {
      if (!choices.oneIn(CLONE_FAILS_ONE_IN)) return choices.oneIn(4) ? 'slow' : 'ok';
      counts.add('a clone failed');
      return 'fail';
    }
    if (!url.startsWith(SOURCES.flaky)) return 'ok';
    const chosen = choices.one(IMPORTS);
    const counted = COUNTED[chosen];
    if (counted !== undefined) counts.add(counted);
    return chosen;
  }

  #snapshotOf({ metadata: { uid = '' } }: StoredObject): SnapshotBehaviour {
    if (this.#isCalm) return 'ok';
    const known = this.#snapshots.get(uid);
    if (known !== undefined) return known;
    const { choices, counts } = this.#simulation;
    const chosen = choices.oneIn(SNAPSHOT_FAULT_ONE_IN) ? choices.one(['error', 'never'] as const) : 'ok';
    if (chosen !== 'ok') counts.add(chosen === 'error' ? 'a snapshot failed' : 'a snapshot was never ready');
    this.#snapshots.set(uid, chosen);
    return chosen;
  }

  #startFails(): boolean {
    const { choices, counts } = this.#simulation;
    if (this.#isCalm || !choices.oneIn(START_FAILS_ONE_IN)) return false;
    counts.add('a machine failed to start');
    return true;
  }
}
