import {
  type Client,
  ForbiddenError,
  type Kind,
  type KubeObject,
  keyOf,
  NotFoundError,
  refOf,
} from '@vmwright/runtime';
import { controllerOf } from '../kubevirt/ownership.ts';
import type { JobFacts } from './candidate.ts';
import { Job, JobSet, Pod } from './kinds.ts';
import { GPUINFO_LABEL } from './labels.ts';
import { PodUses } from './pod-uses.ts';

/**
 * Stands for a job in a namespace that the operator is not allowed to read. It counts as active, so the reservation
 * does not end.
 */
const UNREADABLE: JobFacts = { state: 'Active', boundTo: [], pinnedTo: [], mayRestart: false };

/**
 * Returns the job that uses the reservation of a GPUInfo, according to the API server; undefined if there is none.
 * Uses the same rules (`PodUses`) as for cached objects. A deleted Job counts as ended, even if its pods still exist.
 */
export async function lookUpJob(
  client: Pick<Client, 'pages'>,
  key: string,
  uid: string,
): Promise<JobFacts | undefined> {
  const { namespace, name } = refOf(key);
  if (namespace === undefined) return undefined;
  try {
    const [pods, jobs, jobSets] = await Promise.all([
      all(client, Pod, { namespace, labelSelector: `${GPUINFO_LABEL}=${name}` }),
      all(client, Job, { namespace }),
      all(client, JobSet, { namespace }).catch(noneIfNotInstalled),
    ]);
    const uses = new PodUses({ changed() {}, usageChanged() {}, jobsChanged() {} });
    uses.onInfo({ metadata: { namespace, name, uid } }, false);
    for (const pod of pods) uses.onPod(keyOf(pod.metadata), undefined, pod);
    const existing = new Set(jobs.map(({ metadata }) => metadata.uid));
    for (const jobSet of jobSets) uses.onJobSet(jobSet, false);
    for (const job of jobs) uses.onJob(job, false);
    const existingSets = new Set(jobSets.map(({ metadata }) => metadata.uid));
    for (const job of jobs) {
      const { uid: owner } = controllerOf(job) ?? {};
      if (owner !== undefined && !existingSets.has(owner))
        uses.onJobSet({ metadata: { namespace, name: '', uid: owner } }, true);
    }
    for (const pod of pods) {
      const { uid: owner } = controllerOf(pod) ?? {};
      if (owner !== undefined && !existing.has(owner))
        uses.onJob({ metadata: { namespace, name: '', uid: owner } }, true);
    }
    return uses.jobs().get(uid);
  } catch (error) {
    if (error instanceof ForbiddenError) return UNREADABLE; // no permission, because the namespace is no longer watched
    throw error;
  }
}

function noneIfNotInstalled(error: unknown): readonly JobSet[] {
  if (error instanceof NotFoundError) return [];
  throw error;
}

async function all<T extends KubeObject>(
  client: Pick<Client, 'pages'>,
  kind: Kind<T>,
  options: { readonly namespace: string; readonly labelSelector?: string },
): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const { items } of client.pages(kind, options)) found.push(...items);
  return found;
}
