import { keyOf, type ObjectMeta } from '@vmwright/runtime';
import { controllerOf } from '../kubevirt/ownership.ts';
import { hasEnded, isFinished } from './caches.ts';
import type { GpuUse, JobFacts } from './candidate.ts';
import { JobSets } from './job-sets.ts';
import { Job, type JobSet, type Pod } from './kinds.ts';
import { GPUINFO_LABEL, GPUINFO_UID } from './labels.ts';
import { Multimap } from './multimap.ts';
import { pinnedNode } from './placement.ts';
import { podRequests } from './pod-requests.ts';

/** A pod that uses accelerators, or that refers to a GPUInfo. */
interface User {
  /** Node that the pod is bound to; undefined if the pod is pending or has ended. */
  readonly node: string | undefined;
  /** Node that a pending pod waits for because of its affinity. */
  readonly pinned: string | undefined;
  readonly accelerators: Readonly<Record<string, number>>;
  readonly isFinished: boolean;
  /** GPUInfo that the pod refers to by its label and annotation. */
  readonly info: { readonly key: string; readonly uid: string } | undefined;
  /** UID of the batch/v1 Job that controls the pod. */
  readonly job: string | undefined;
  /** Whether a controller other than a Job may start further pods after this one. */
  readonly mayRestart: boolean;
}

/** CPU and memory that the pods of a node request together. */
export interface NodeRequests {
  readonly cpuMillicores: number;
  readonly memoryBytes: number;
}

const NO_REQUESTS: NodeRequests = { cpuMillicores: 0, memoryBytes: 0 };

/** Receives changes of pod usage. */
export interface UseListener {
  /** The GPUs that pods of the node use, or their holders, may have changed. */
  changed(node: string): void;
  /** The CPU and memory that pods of the node request have changed. */
  usageChanged(node: string): void;
  /** The job of a GPUInfo may have started or ended. */
  jobsChanged(): void;
}

/**
 * Tracks what pods use: CPU, memory and accelerators by node, and the jobs of GPUInfos. Keeps no record of a pod that
 * uses no accelerator and refers to no GPUInfo.
 *
 * A pod uses a GPUInfo if its label names the GPUInfo and its annotation has the UID of the GPUInfo. The pod and the
 * GPUInfo must be in the same namespace, so that an edited pod cannot use a reservation of another namespace.
 */
export class PodUses {
  readonly #listener: UseListener;
  readonly #requests = new Map<string, NodeRequests>();
  readonly #users = new Map<string, User>();
  readonly #byNode = new Multimap<string, string>();
  readonly #byInfo = new Multimap<string, string>();
  readonly #byJob = new Multimap<string, string>();
  /** UIDs of the existing GPUInfos by key. */
  readonly #infos = new Map<string, string>();
  /** Existing Jobs by UID. */
  readonly #jobs = new Map<string, 'Active' | 'Ended'>();
  /** UIDs of Jobs that are gone and that pods still refer to. */
  readonly #goneJobs = new Set<string>();
  /** GPUInfos in the pod templates of Jobs that have not ended, by UID of the Job. */
  readonly #templates = new Map<string, Template>();
  /** UIDs of Jobs with a controller, such as a JobSet, which may start them again. */
  readonly #controlled = new Set<string>();
  readonly #jobSets = new JobSets();
  /** GPUInfos by UID of the Job that uses them. Kept while the Job has no pods, for example before it retries a pod. */
  readonly #infoOfJob = new Map<string, { readonly key: string; readonly uid: string }>();

  constructor(listener: UseListener) {
    this.#listener = listener;
  }

  /** Updates the usage after a pod changed. @param after undefined if the pod is gone */
  onPod(key: string, before: Pod | undefined, after: Pod | undefined): void {
    this.#count(before, -1);
    this.#count(after, 1);
    const [known, user] = [this.#users.get(key), after && userOf(after)];
    if (known === undefined && user === undefined) return;
    if (JSON.stringify(known) === JSON.stringify(user)) return;
    if (known !== undefined) this.#drop(key, known);
    if (user !== undefined) this.#add(key, user);
    this.#concerned([known, user]);
  }

  onJob(job: Job, isGone: boolean): void {
    const { uid = '' } = job.metadata;
    const before = this.#textOf(uid);
    const state = hasEnded(job) ? 'Ended' : 'Active';
    const template = isGone || state === 'Ended' ? undefined : templateOf(job);
    if (template === undefined) this.#templates.delete(uid);
    else this.#templates.set(uid, template);
    const hasPods = this.#byJob.get(uid).size > 0;
    if (controllerOf(job) !== undefined) this.#controlled.add(uid);
    this.#jobSets.addJob(job);
    if (isGone) {
      if (hasPods) this.#goneJobs.add(uid);
      else this.#forgetController(uid);
      this.#jobs.delete(uid);
      this.#infoOfJob.delete(uid);
    } else this.#jobs.set(uid, state);
    if (before !== this.#textOf(uid)) this.#listener.jobsChanged();
  }

  /** Returns a fingerprint of a Job's contribution to `jobs`. */
  #textOf(job: string): string {
    const isUsed = this.#byJob.get(job).size > 0 || this.#infoOfJob.has(job);
    const { key, hasHadPods } = this.#templates.get(job) ?? {};
    const state = isUsed && (this.#jobs.get(job) ?? this.#goneJobs.has(job));
    return [key, hasHadPods, state, isUsed && this.#jobSets.stateFor(job)].join(' ');
  }

  onJobSet(jobSet: JobSet, isGone: boolean): void {
    if (this.#jobSets.onJobSet(jobSet, isGone)) this.#listener.jobsChanged();
  }

  onInfo({ metadata }: { readonly metadata: ObjectMeta }, isGone: boolean): void {
    const key = keyOf(metadata);
    const uid = isGone ? undefined : metadata.uid;
    if (this.#infos.get(key) === uid) return;
    if (uid === undefined) this.#infos.delete(key);
    else this.#infos.set(key, uid);
    const pods = this.#byInfo.get(key);
    if (pods.size > 0) this.#concerned([...pods].map((pod) => this.#users.get(pod)));
    else if (this.#isInTemplate(key)) this.#listener.jobsChanged();
  }

  /**
   * Whether a Job or JobSet that has not ended refers to a GPUInfo in its pod template.
   * @param key key of the GPUInfo
   */
  #isInTemplate(key: string): boolean {
    return (
      this.#templates.values().some((each) => each.key === key) ||
      this.#jobSets.active().some((each) => each === key)
    );
  }

  requestsOn(node: string): NodeRequests {
    return this.#requests.get(node) ?? NO_REQUESTS;
  }

  /** Returns the accelerators of an extended resource that pods of a node use, by holder (UID of a GPUInfo). */
  usesOf(node: string, resource: string): readonly GpuUse[] {
    const uses = new Map<string | undefined, number>();
    for (const key of this.#byNode.get(node)) {
      const user = this.#users.get(key);
      const gpus = user?.accelerators[resource] ?? 0;
      const holder = this.#holder(user);
      if (gpus > 0) uses.set(holder, (uses.get(holder) ?? 0) + gpus);
    }
    return usesIn(uses);
  }

  /** Returns the UID of the GPUInfo that a pod uses. @param pod `namespace/name` */
  holderOf(pod: string): string | undefined {
    return this.#holder(this.#users.get(pod));
  }

  /** Returns the state of the jobs that use GPUInfos, by UID of the GPUInfo. */
  jobs(): ReadonlyMap<string, JobFacts> {
    const jobs = new Map<string, JobFacts>();
    const add = (uid: string | undefined, more: Partial<JobFacts> & Pick<JobFacts, 'state'>) => {
      if (uid !== undefined) jobs.set(uid, combined(jobs.get(uid), { ...NO_PODS, ...more }));
    };
    for (const user of this.#users.values())
      if (user.info !== undefined) add(this.#holder(user), this.#jobOf(user));
    for (const [job, info] of this.#infoOfJob)
      if (this.#stateOfJob(job) === 'Active' && this.#infos.get(info.key) === info.uid)
        add(info.uid, { state: 'Active', ...this.#restartOf(job) });
    // If no pod of a Job is known, its pod template shows which GPUInfo it uses. Either the Job has had no pods yet, or
    // its pods were deleted before the operator started.
    for (const [job, { key, hasHadPods }] of this.#templates)
      if (!this.#infoOfJob.has(job)) {
        const state = hasHadPods ? 'Active' : 'Waiting';
        add(this.#infos.get(key), { state, ...this.#restartOf(job) });
      }
    // A JobSet that has not ended counts as a waiting job even if it has no Jobs: to restart its Jobs, it first deletes
    // the earlier ones.
    for (const key of this.#jobSets.active())
      add(this.#infos.get(key), { state: 'Waiting', mayRestart: true });
    return new Map([...jobs].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  #jobOf(user: User): JobFacts {
    const { node, pinned, job, mayRestart } = user;
    return {
      state: this.#stateOf(user),
      boundTo: node === undefined ? [] : [node],
      pinnedTo: pinned === undefined ? [] : [pinned],
      ...(job === undefined ? { mayRestart } : this.#restartOf(job)),
    };
  }

  /**
   * Returns the state of the Job that controls a pod; without a Job, the state of the pod. A Job that was never
   * observed counts as active, because the watch of Jobs may lag behind the watch of Pods.
   */
  #stateOf({ job, isFinished: isOver }: User): 'Active' | 'Ended' {
    if (job !== undefined) return this.#stateOfJob(job) ?? 'Active';
    return isOver ? 'Ended' : 'Active';
  }

  /**
   * Returns the state of a Job; undefined if it was never observed. A Job counts as active while its JobSet is active.
   */
  #stateOfJob(job: string): 'Active' | 'Ended' | undefined {
    if (this.#jobSets.stateFor(job) === 'Active') return 'Active';
    return this.#goneJobs.has(job) ? 'Ended' : this.#jobs.get(job);
  }

  /** Returns whether the controller of a Job may start the Job again. */
  #restartOf(job: string): Pick<JobFacts, 'mayRestart' | 'isOver'> {
    if (this.#jobSets.stateFor(job) === 'Ended') return { mayRestart: false, isOver: true };
    return { mayRestart: this.#controlled.has(job) };
  }

  #forgetController(job: string): void {
    this.#controlled.delete(job);
    this.#jobSets.removeJob(job);
  }

  #holder(user: User | undefined): string | undefined {
    const info = user?.info;
    return info !== undefined && this.#infos.get(info.key) === info.uid ? info.uid : undefined;
  }

  #count(pod: Pod | undefined, sign: 1 | -1): void {
    const node = pod?.spec?.nodeName;
    if (pod?.spec === undefined || node === undefined || isFinished(pod)) return;
    const { cpuMillicores, memoryBytes } = podRequests(pod.spec);
    if (cpuMillicores === 0 && memoryBytes === 0) return;
    const known = this.requestsOn(node);
    const sum = {
      cpuMillicores: known.cpuMillicores + sign * cpuMillicores,
      memoryBytes: known.memoryBytes + sign * memoryBytes,
    };
    if (sum.cpuMillicores === 0 && sum.memoryBytes === 0) this.#requests.delete(node);
    else this.#requests.set(node, sum);
    this.#listener.usageChanged(node);
  }

  #add(key: string, user: User): void {
    this.#users.set(key, user);
    if (user.node !== undefined) this.#byNode.add(user.node, key);
    if (user.info === undefined) return;
    this.#byInfo.add(user.info.key, key);
    if (user.job === undefined) return;
    this.#byJob.add(user.job, key);
    if (!this.#goneJobs.has(user.job)) this.#infoOfJob.set(user.job, user.info);
  }

  #drop(key: string, { node, info, job }: User): void {
    this.#users.delete(key);
    if (node !== undefined) this.#byNode.delete(node, key);
    if (info !== undefined) this.#byInfo.delete(info.key, key);
    if (info === undefined || job === undefined) return;
    this.#byJob.delete(job, key);
    if (this.#byJob.get(job).size > 0) return;
    this.#goneJobs.delete(job);
    if (this.#jobs.has(job)) return;
    this.#infoOfJob.delete(job);
    this.#forgetController(job);
  }

  #concerned(users: readonly (User | undefined)[]): void {
    for (const user of users) if (user?.node !== undefined) this.#listener.changed(user.node);
    if (users.some((user) => user?.info !== undefined)) this.#listener.jobsChanged();
  }
}

/** Returns the uses in a fixed order: by holder, uses without a holder last. */
export function usesIn(byHolder: ReadonlyMap<string | undefined, number>): readonly GpuUse[] {
  return [...byHolder]
    .map(([holder, gpus]) => ({ holder, gpus }))
    .toSorted((a, b) => ((a.holder ?? '~') < (b.holder ?? '~') ? -1 : 1));
}

/** GPUInfo that the pod template of a Job refers to. */
interface Template {
  readonly key: string;
  /** Whether the Job has had pods that ended, according to its status. */
  readonly hasHadPods: boolean;
}

function templateOf({ metadata, spec, status }: Job): Template | undefined {
  const name = spec?.template?.metadata?.labels?.[GPUINFO_LABEL];
  if (name === undefined) return undefined;
  const hasHadPods = (status?.failed ?? 0) + (status?.succeeded ?? 0) > 0;
  return { key: keyOf({ namespace: metadata.namespace, name }), hasHadPods };
}

const NO_PODS = { boundTo: [], pinnedTo: [], mayRestart: false } as const;

/**
 * States of the job of a GPUInfo (`JobFacts`), by precedence. If the pods and Jobs that belong to it have different
 * states, the job has the state that comes first in this list.
 */
const STATES = ['Active', 'Ended', 'Waiting'] as const;

function combined(known: JobFacts | undefined, more: JobFacts): JobFacts {
  if (known === undefined) return more;
  return {
    state: STATES.find((state) => state === known.state || state === more.state) ?? more.state,
    boundTo: [...new Set([...known.boundTo, ...more.boundTo])].toSorted(),
    pinnedTo: [...new Set([...known.pinnedTo, ...more.pinnedTo])].toSorted(),
    mayRestart: known.mayRestart || more.mayRestart,
    ...((known.isOver || more.isOver) && { isOver: true }),
  };
}

function userOf(pod: Pod): User | undefined {
  const { metadata, spec } = pod;
  const name = metadata.labels?.[GPUINFO_LABEL];
  const uid = metadata.annotations?.[GPUINFO_UID];
  const info =
    name === undefined || uid === undefined
      ? undefined
      : { key: keyOf({ namespace: metadata.namespace, name }), uid };
  const isOver = isFinished(pod);
  const accelerators = spec === undefined || isOver ? {} : podRequests(spec).accelerators;
  if (info === undefined && Object.keys(accelerators).length === 0) return undefined;
  const owner = controllerOf(pod);
  const isJob = owner?.kind === Job.kind && owner.apiVersion === 'batch/v1';
  const node = isOver ? undefined : spec?.nodeName;
  return {
    node,
    pinned: isOver || node !== undefined || spec === undefined ? undefined : pinnedNode(spec),
    accelerators,
    isFinished: isOver,
    info,
    job: isJob ? owner.uid : undefined,
    mayRestart: owner !== undefined && !isJob,
  };
}
