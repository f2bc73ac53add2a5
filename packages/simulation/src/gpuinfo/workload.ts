import { GPUInfo } from '@vmwright/operator';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { AdminClient } from '../runtime/admin-client.ts';
import { byUid, controllerOf, find, onChange, phaseIn, textAt } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import type { Hosts } from './hosts.ts';
import { GPU, INFO_LABEL, INFO_UID, Job, Node, Pod } from './kinds.ts';
import { blockedBy, gpusOf, isOver, podGpus, wantedBy } from './rules.ts';

/** Actions of workloads. When many seeds are run, each of them must occur in at least one seed. */
export const WORKLOAD_ACTIONS = [
  'a Job used a reservation',
  'a pod without a Job used a reservation',
  'a Job used a reservation on another node',
  'a Job ended',
  'a Job was deleted',
  'a Job lost its pod and started another one',
  'a pod without a Job ended',
  'a pod without a reservation used GPUs',
  'a pod without a reservation ended',
  'a pod waited for a node',
] as const;

type WorkloadAction = (typeof WORKLOAD_ACTIONS)[number];

/** One in `USED_ONE_IN` reservations is used by a Job or a pod. */
const USED_ONE_IN = 2;
const ELSEWHERE_ONE_IN = 8;
const START_MS = 8_000;
const RUN_MS = 60_000;
/** One in `LONG_ONE_IN` jobs runs until the end of the simulation. */
const LONG_ONE_IN = 3;
const RETRY_MS = 15_000;

/**
 * The scheduler, the Job controller, and the users who start jobs. Pods have the fields that the operator's webhook
 * adds.
 */
export class Workload {
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #hosts: Hosts;
  readonly #admins = new Map<string, AdminClient>();
  #started = 0;
  #isOver = false;

  constructor(simulation: Simulation, server: ApiServer, hosts: Hosts) {
    this.#simulation = simulation;
    this.#server = server;
    this.#hosts = hosts;
    const { choices, schedule } = simulation;
    onChange(server, GPUInfo, (before, after) => {
      if (after === undefined || this.#isOver) return;
      const isNew = phaseIn(after) === 'Reserved' && phaseIn(before) !== 'Reserved';
      if (isNew && choices.oneIn(USED_ONE_IN)) schedule.after(choices.pick(START_MS), () => this.#use(after));
    });
    onChange(server, Node, (before, after) => {
      if (after === undefined && before !== undefined)
        schedule.after(1_000 + choices.pick(5_000), () => this.#evict(before.metadata.name));
    });
  }

  /** Starts or ends a pod that uses GPUs without a reservation. */
  act(): void {
    const { choices } = this.#simulation;
    const running = this.#pods().filter(({ metadata }) => metadata.namespace === 'other');
    const ending = running[choices.pick(2 * running.length + 1) - 1];
    if (ending !== undefined) {
      this.#count('a pod without a reservation ended');
      this.#end(ending);
      return;
    }
    const nodes = [...this.#server.objects(Node)].filter((node) => this.#fits(node, 1));
    const node = nodes[choices.pick(Math.max(nodes.length, 1))];
    if (node === undefined) return;
    this.#count('a pod without a reservation used GPUs');
    this.#start('other', { labels: {} }, node.metadata.name, 1);
  }

  /** Stops starting pods and Jobs. */
  stop(): void {
    this.#isOver = true;
  }

  /** Starts a Job or a pod that uses a reservation. */
  #use({ metadata: { uid, name, namespace = '' } }: StoredObject): void {
    const { choices, schedule } = this.#simulation;
    const info = find(this.#server, GPUInfo, namespace, name);
    if (this.#isOver || info === undefined || info.metadata.uid !== uid || phaseIn(info) !== 'Reserved')
      return;
    const isJob = !choices.oneIn(3);
    const isLong = choices.oneIn(LONG_ONE_IN);
    this.#count(isJob ? 'a Job used a reservation' : 'a pod without a Job used a reservation');
    if (!isJob) {
      const pod = this.#startFor(info, undefined);
      if (!isLong) schedule.after(choices.pick(RUN_MS), () => this.#endAlone(namespace, pod));
      return;
    }
    this.#started += 1;
    const job = `job-${this.#started}`;
    this.#admin(namespace).create(Job, job, {
      spec: { template: { metadata: { labels: { [INFO_LABEL]: name } } } },
    });
    this.#startFor(info, job);
    if (choices.oneIn(3)) schedule.after(choices.pick(RUN_MS / 2), () => this.#retry(info, job));
    if (!isLong) schedule.after(choices.pick(RUN_MS), () => this.#endJob(namespace, job));
  }

  /** Starts a pod on the reserved node or, rarely, on another node. @returns the name of the pod */
  #startFor(info: StoredObject, job: string | undefined): string {
    const { namespace = '', name, uid } = info.metadata;
    const { choices } = this.#simulation;
    const owner = job === undefined ? undefined : find(this.#server, Job, namespace, job);
    const reserved = textAt(find(this.#server, GPUInfo, namespace, name), 'status', 'suitableNodeName') ?? '';
    const isElsewhere = choices.oneIn(ELSEWHERE_ONE_IN);
    const node = isElsewhere
      ? [...this.#server.objects(Node)].find((each) => each.metadata.name !== reserved)
      : find(this.#server, Node, undefined, reserved);
    const wanted = wantedBy(info).gpus;
    const hasOwn = node !== undefined && this.#poolOf(node)?.startsWith('node/') === true;
    const gpus = hasOwn ? wanted : 0;
    const isStarted = node !== undefined && this.#fits(node, gpus);
    if (!isStarted) this.#count('a pod waited for a node');
    else if (isElsewhere) this.#count('a Job used a reservation on another node');
    const { metadata: { uid: owned = '' } = {} } = owner ?? {};
    const reference = { apiVersion: 'batch/v1', kind: 'Job', name: job, uid: owned, controller: true };
    return this.#start(
      namespace,
      {
        labels: { [INFO_LABEL]: name },
        annotations: { [INFO_UID]: uid },
        ...(owner && { ownerReferences: [reference] }),
      },
      isStarted ? node.metadata.name : undefined,
      gpus,
    );
  }

  #start(namespace: string, metadata: object, nodeName: string | undefined, gpus: number): string {
    this.#started += 1;
    const name = `pod-${this.#started}`;
    const requests = { cpu: '100m', ...(gpus > 0 && { [GPU]: String(gpus) }) };
    this.#simulation.note('scheduler', `starts ${namespace}/${name} on ${nodeName} with ${gpus} GPUs`);
    this.#admin(namespace).create(Pod, name, {
      metadata,
      spec: {
        ...(nodeName !== undefined && { nodeName }),
        containers: [{ name: 'main', resources: { requests } }],
      },
      status: { phase: nodeName === undefined ? 'Pending' : 'Running' },
    });
    return name;
  }

  /** Deletes the pods of a Job. The Job then starts another pod. */
  #retry(info: StoredObject, name: string): void {
    const { namespace = '' } = info.metadata;
    const { choices, schedule } = this.#simulation;
    const job = find(this.#server, Job, namespace, name);
    if (job === undefined || isComplete(job)) return;
    this.#count('a Job lost its pod and started another one');
    this.#countFailure(job);
    for (const pod of this.#podsOf(job)) this.#admin(namespace).delete(Pod, pod.metadata.name);
    schedule.after(choices.pick(RETRY_MS), () => {
      const after = find(this.#server, Job, namespace, name);
      const current = find(this.#server, GPUInfo, namespace, info.metadata.name);
      if (after === undefined || isComplete(after) || current === undefined) return;
      // Starts no pod while no node is reserved, because the webhook would reject the pod.
      if (phaseIn(current) === 'Reserved') this.#startFor(current, name);
    });
  }

  #endJob(namespace: string, name: string): void {
    const { choices } = this.#simulation;
    const job = find(this.#server, Job, namespace, name);
    if (job === undefined) return;
    if (choices.oneIn(3)) {
      this.#count('a Job was deleted');
      this.#admin(namespace).delete(Job, name); // the garbage collector deletes the Job's pods
      return;
    }
    this.#count('a Job ended');
    const type = choices.one(['Complete', 'Failed']);
    for (const pod of this.#podsOf(job)) this.#finish(pod);
    this.#admin(namespace).merge(Job, name, { status: { conditions: [{ type, status: 'True' }] } });
  }

  #endAlone(namespace: string, name: string): void {
    const pod = find(this.#server, Pod, namespace, name);
    if (pod === undefined) return;
    this.#count('a pod without a Job ended');
    this.#end(pod);
  }

  #end(pod: StoredObject): void {
    const { namespace = '', name } = pod.metadata;
    if (this.#simulation.choices.oneIn(2)) this.#admin(namespace).delete(Pod, name);
    else this.#finish(pod);
  }

  #finish({ metadata: { namespace = '', name } }: StoredObject): void {
    const phase = this.#simulation.choices.one(['Succeeded', 'Failed']);
    this.#admin(namespace).merge(Pod, name, { status: { phase } });
  }

  /** Deletes the pods of a node that is gone. */
  #evict(name: string): void {
    if (find(this.#server, Node, undefined, name) !== undefined) return;
    for (const pod of this.#pods().filter((each) => textAt(each, 'spec', 'nodeName') === name)) {
      const { namespace = '' } = pod.metadata;
      const job = byUid(this.#server, Job, controllerOf(pod));
      if (job !== undefined) this.#countFailure(job);
      this.#admin(namespace).delete(Pod, pod.metadata.name);
    }
  }

  /** Records in the status of the Job that a pod failed, as the Job controller does. */
  #countFailure({ metadata: { namespace = '', name } }: StoredObject): void {
    this.#admin(namespace).merge(Job, name, { status: { failed: 1 } });
  }

  /** Whether the scheduler can start a pod with this number of GPUs on a node. */
  #fits(node: StoredObject, gpus: number): boolean {
    if (blockedBy(node) !== undefined) return false;
    if (gpus === 0) return true;
    const total = this.#poolOf(node)?.startsWith('node/')
      ? (gpusOf(node, { hosts: this.#hosts })?.total ?? 0)
      : 0;
    const used = this.#pods()
      .filter((pod) => textAt(pod, 'spec', 'nodeName') === node.metadata.name)
      .reduce((sum, pod) => sum + podGpus(pod), 0);
    return total - used >= gpus;
  }

  #poolOf(node: StoredObject): string | undefined {
    return gpusOf(node, { hosts: this.#hosts })?.pool;
  }

  #pods(): readonly StoredObject[] {
    return [...this.#server.objects(Pod)].filter((pod) => !isOver(pod));
  }

  #podsOf({ metadata: { uid } }: StoredObject): readonly StoredObject[] {
    return this.#pods().filter((pod) => controllerOf(pod) === uid);
  }

  #admin(namespace: string): AdminClient {
    const admin = this.#admins.get(namespace) ?? new AdminClient(this.#server, namespace);
    this.#admins.set(namespace, admin);
    return admin;
  }

  #count(what: WorkloadAction): void {
    this.#simulation.counts.add(what);
  }
}

/** Whether a Job has ended. */
export function isComplete(job: StoredObject): boolean {
  return JSON.stringify(job.status ?? {}).includes('"status":"True"');
}
