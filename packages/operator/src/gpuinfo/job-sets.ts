import { keyOf } from '@vmwright/runtime';
import { controllerOf } from '../kubevirt/ownership.ts';
import { type Job, JobSet } from './kinds.ts';
import { GPUINFO_LABEL } from './labels.ts';
import { Multimap } from './multimap.ts';

/** State of a JobSet. `Unknown`: the JobSet has not been observed, for example because the watch lags. */
export type JobSetState = 'Active' | 'Ended' | 'Unknown';

/** JobSets, and the Jobs that they control. A JobSet may create its Jobs again until it has ended. */
export class JobSets {
  /** Existing JobSets by UID, with the keys of the GPUInfos in their pod templates. */
  readonly #sets = new Map<string, { readonly isEnded: boolean; readonly infos: readonly string[] }>();
  /** UIDs of JobSets that are gone and still have Jobs. */
  readonly #gone = new Set<string>();
  /** UID of the JobSet by UID of its Job. */
  readonly #ofJob = new Map<string, string>();
  readonly #jobs = new Multimap<string, string>();

  /** @returns whether the JobSet has changed: its state, or which GPUInfos its pod templates refer to */
  onJobSet(jobSet: JobSet, isGone: boolean): boolean {
    const { uid = '' } = jobSet.metadata;
    const before = JSON.stringify(this.#sets.get(uid));
    if (isGone) {
      this.#sets.delete(uid);
      if (this.#jobs.get(uid).size > 0) this.#gone.add(uid);
    } else this.#sets.set(uid, { isEnded: hasEnded(jobSet), infos: infosOf(jobSet) });
    return before !== JSON.stringify(this.#sets.get(uid));
  }

  /** Remembers the JobSet that controls a Job. */
  addJob(job: Job): void {
    const { uid = '' } = job.metadata;
    const owner = controllerOf(job);
    if (owner?.kind !== JobSet.kind || !owner.apiVersion.startsWith(`${JobSet.group}/`)) return;
    this.#ofJob.set(uid, owner.uid);
    this.#jobs.add(owner.uid, uid);
  }

  /** Forgets a Job. @param job its UID */
  removeJob(job: string): void {
    const owner = this.#ofJob.get(job);
    if (owner === undefined) return;
    this.#ofJob.delete(job);
    this.#jobs.delete(owner, job);
    if (this.#jobs.get(owner).size === 0) this.#gone.delete(owner);
  }

  /**
   * Returns the state of the JobSet that controls a Job; undefined if no JobSet controls it. @param job UID of the Job
   */
  stateFor(job: string): JobSetState | undefined {
    const uid = this.#ofJob.get(job);
    if (uid === undefined) return undefined;
    const known = this.#sets.get(uid);
    if (known !== undefined) return known.isEnded ? 'Ended' : 'Active';
    return this.#gone.has(uid) ? 'Ended' : 'Unknown';
  }

  /** Returns the keys of the GPUInfos in the pod templates of JobSets that have not ended. */
  *active(): Generator<string, void, undefined> {
    for (const { isEnded, infos } of this.#sets.values()) if (!isEnded) yield* infos;
  }
}

/** Whether a JobSet starts no further Jobs, because it has ended or is being deleted. */
function hasEnded({ metadata, status }: JobSet): boolean {
  return metadata.deletionTimestamp !== undefined || (status?.terminalState ?? '') !== '';
}

function infosOf({ metadata, spec }: JobSet): readonly string[] {
  const names = spec?.replicatedJobs?.map(
    ({ template }) => template?.spec?.template?.metadata?.labels?.[GPUINFO_LABEL],
  );
  const { namespace } = metadata;
  return [...new Set(names)].flatMap((name) => (name === undefined ? [] : [keyOf({ namespace, name })]));
}
