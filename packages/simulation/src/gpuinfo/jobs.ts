import { GPUInfo } from '@vmwright/operator';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { controllerOf, find, numberAt, onChange, textAt } from '../scenario/stored-objects.ts';
import { INFO_LABEL, INFO_UID, Job, Pod } from './kinds.ts';
import { holderOf, isOver } from './rules.ts';
import { isComplete } from './workload.ts';

/**
 * History of the jobs that use reservations, according to the objects in the API server. A Job is active from its first
 * pod that refers to a GPUInfo until the Job ends or is deleted. A pod without a Job is active until the pod ends or is
 * deleted.
 *
 * After a restart, a replica does not know to which GPUInfo earlier pods of a Job referred. The replica then assumes
 * the GPUInfo in the Job's template. `mayBeActive` allows for this assumption.
 */
export class JobHistory {
  readonly #server: ApiServer;
  /** By UID of a Job: UIDs of the GPUInfos to which pods of the Job have referred. */
  readonly #infosOfJob = new Map<string, Set<string>>();
  readonly #active = new Set<string>();
  readonly #ended = new Set<string>();

  constructor(server: ApiServer) {
    this.#server = server;
    onChange(server, Pod, (before, after) => {
      const pod = after ?? before;
      const job = pod && controllerOf(pod);
      const uid = after && holderOf(after, [...server.objects(GPUInfo)]);
      if (job !== undefined && uid !== undefined)
        this.#infosOfJob.set(job, (this.#infosOfJob.get(job) ?? new Set()).add(uid));
      this.#update(pod?.metadata.annotations?.[INFO_UID]);
    });
    onChange(server, Job, (before, after) => {
      const job = after ?? before;
      if (job === undefined) return;
      for (const uid of this.#infosOfJob.get(job.metadata.uid ?? '') ?? []) this.#update(uid);
      const info = infoOf(server, job);
      if (info !== undefined && (after === undefined || isComplete(after))) this.#ended.add(info);
    });
  }

  /** Whether a job uses the reservation of a GPUInfo now. */
  isActive(uid: string): boolean {
    return this.#active.has(uid);
  }

  /**
   * Whether the template of an unfinished Job with a failed pod names the GPUInfo. The next pod of that Job may use the
   * reservation.
   */
  mayBeActive(uid: string): boolean {
    const jobs = this.#server.objects(Job);
    return jobs.some(
      (job) =>
        !isComplete(job) && numberAt(job, 'status', 'failed') === 1 && infoOf(this.#server, job) === uid,
    );
  }

  /**
   * Whether at least one job of a GPUInfo has ended or was deleted: a job that used the GPUInfo's reservation, or a Job
   * with a template that names the GPUInfo.
   */
  hasEnded(uid: string): boolean {
    return this.#ended.has(uid);
  }

  /** Whether an unfinished pod that refers to a GPUInfo is bound to this node. */
  isRunningOn(uid: string, node: string): boolean {
    return this.nodesOf(uid).includes(node);
  }

  /** Returns the nodes to which the unfinished pods that refer to a GPUInfo are bound. */
  nodesOf(uid: string): readonly string[] {
    const infos = [...this.#server.objects(GPUInfo)];
    return [...this.#server.objects(Pod)]
      .filter((pod) => !isOver(pod) && holderOf(pod, infos) === uid)
      .flatMap((pod) => textAt(pod, 'spec', 'nodeName') ?? []);
  }

  #update(uid: string | undefined): void {
    if (uid === undefined) return;
    const isActive = this.#isActive(uid);
    if (this.#active.has(uid) && !isActive) this.#ended.add(uid);
    if (isActive) this.#active.add(uid);
    else this.#active.delete(uid);
  }

  #isActive(uid: string): boolean {
    for (const job of this.#server.objects(Job))
      if (this.#infosOfJob.get(job.metadata.uid ?? '')?.has(uid) && !isComplete(job)) return true;
    const infos = [...this.#server.objects(GPUInfo)];
    const isAlone = (pod: StoredObject) => controllerOf(pod) === undefined;
    return this.#server
      .objects(Pod)
      .some((pod) => isAlone(pod) && !isOver(pod) && holderOf(pod, infos) === uid);
  }
}

/** Returns the UID of the GPUInfo that the template of a Job names. */
function infoOf(server: ApiServer, job: StoredObject): string | undefined {
  const name = textAt(job, 'spec', 'template', 'metadata', 'labels', INFO_LABEL) ?? '';
  return find(server, GPUInfo, job.metadata.namespace, name)?.metadata.uid;
}
