import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, field, type KubeObject } from '../../kubernetes/api.ts';
import type { Mirror } from '../../kubernetes/mirror.ts';
import { isClaimOf } from './claim.ts';
import { statusOf, type VolumeReport } from './data-volume-status.ts';
import { behaviourOf, type ImportBehaviour } from './import-behaviour.ts';

const STEP_MS = 200;

/** Caches of the stand-in for CDI. */
export interface CdiCaches {
  readonly volumes: Mirror;
  readonly claims: Mirror;
  readonly snapshots: Mirror;
  readonly classes: Mirror;
}

/**
 * A DataVolume while the stand-in for CDI populates it. Its methods throw once the DataVolume is deleted, which ends
 * the population.
 */
export class PopulatedVolume {
  readonly #api: Api;
  readonly #caches: CdiCaches;
  readonly #created: KubeObject;

  constructor(api: Api, caches: CdiCaches, created: KubeObject) {
    this.#api = api;
    this.#caches = caches;
    this.#created = created;
  }

  get behaviour(): ImportBehaviour {
    return behaviourOf(this.#current);
  }

  /** Number of importer restarts that the status reports. */
  get restartCount(): number {
    return Number(field(this.#current, 'status', 'restartCount') ?? 0);
  }

  /** The claim of the DataVolume, if it exists. */
  get claim(): KubeObject | undefined {
    return this.#caches.claims.find((claim) => isClaimOf(claim, this.#created.metadata.uid));
  }

  async report(report: VolumeReport): Promise<void> {
    this.#assertExists();
    const { name, namespace, uid } = this.#created.metadata;
    await this.#api.merge(
      `/apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes/${name}/status`,
      {
        metadata: { uid }, // never writes to a DataVolume that was re-created under the same name
        status: statusOf(this.#current, this.claim, report, new Date()),
      },
    );
  }

  /** Records an event for the DataVolume. */
  async warn(reason: string, message: string): Promise<void> {
    const { apiVersion = 'cdi.kubevirt.io/v1beta1', kind = 'DataVolume', metadata } = this.#created;
    const { name, namespace, uid } = metadata;
    const now = new Date().toISOString().replace(/\.\d+/, '');
    await this.#api.create(`/api/v1/namespaces/${namespace}/events`, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: `${name}.` },
      involvedObject: { apiVersion, kind, namespace, name, uid },
      source: { component: 'cdi-testbed' },
      type: 'Warning',
      reason,
      message,
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    });
  }

  /** Waits for the duration of one step of the import or clone. */
  async step(): Promise<void> {
    await sleep(this.behaviour.slow ? STEP_MS * 10 : STEP_MS);
    this.#assertExists();
  }

  /** Waits until `predicate` holds, checking it on each change of a cache. */
  async until(predicate: () => boolean): Promise<void> {
    const { volumes, claims, snapshots } = this.#caches;
    while (!predicate()) {
      this.#assertExists();
      await Promise.race([volumes, claims, snapshots].map((mirror) => mirror.nextChange()));
    }
  }

  get #current(): KubeObject | undefined {
    const current = this.#caches.volumes.get(this.#created.metadata.uid);
    return current?.metadata.deletionTimestamp === undefined ? current : undefined;
  }

  #assertExists(): void {
    if (this.#current === undefined || this.#caches.volumes.disposed)
      throw new Error(`DataVolume ${this.#created.metadata.name} is deleted`);
  }
}
