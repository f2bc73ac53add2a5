import {
  ApiError,
  createNode,
  field,
  type KubeObject,
  startKwok,
  startVcsim,
  type Vcsim,
  type VcsimOptions,
} from '@vmwright/testbed';
import { type Auditing, type Installed, installed, SYSTEM } from './installed.ts';

/** Namespace of the GPUInfos in tests. */
const ML = 'ml';

/** Paths of the collections that tests read and write. */
export const PATHS = {
  infos: `/apis/topology.corinternal.com/v1/namespaces/${ML}/gpuinfoes`,
  nodes: '/api/v1/nodes',
  pods: `/api/v1/namespaces/${ML}/pods`,
  jobs: `/apis/batch/v1/namespaces/${ML}/jobs`,
  events: `/apis/events.k8s.io/v1/namespaces/${ML}/events`,
  ledger: `/api/v1/namespaces/${SYSTEM}/configmaps/vmwright-gpu-reservations`,
} as const;

/** An installed operator on a private cluster with nodes that kwok simulates. */
export interface WithGpus extends Installed, AsyncDisposable {
  /** The vCenter; undefined unless the options configure one. */
  readonly vcsim: Vcsim | undefined;
  /** Creates a node, by default without GPUs, and waits until it is Ready. */
  node(name: string, gpus?: number, labels?: Readonly<Record<string, string>>): Promise<void>;
  /** Creates a request (a GPUInfo), by default for one GPU for 100 hours. */
  info(name: string, spec?: object): Promise<KubeObject>;
  /** Waits until the request satisfies the predicate. */
  until(name: string, is: (info: KubeObject) => boolean): Promise<KubeObject>;
  /** Waits until the status of the request names this node. */
  reserved(name: string, node: string): Promise<KubeObject>;
  /** Waits until the request is pending for this reason, or for any reason if `reason` is undefined. */
  pending(name: string, reason?: string): Promise<KubeObject>;
  /** Waits until the operator can reserve one GPU of a node. Creates a request for it and deletes the request again. */
  suitable(node: string): Promise<void>;
  /** Creates a pod that uses GPUs of a node. */
  pod(name: string, node: string, gpus: number): Promise<KubeObject>;
  /** Waits for an event about a request. @returns the event's note */
  event(name: string, reason: string): Promise<string>;
  /** Deletes an object, unless the garbage collector was faster, and waits until it is gone. */
  remove(path: string): Promise<void>;
  /** Returns the stored reservation of a request; undefined if there is none. */
  reservation(name: string): Promise<unknown>;
}

export async function install(
  options: {
    readonly vcsim?: VcsimOptions;
    /** Changes the vCenter before the operator starts, so that the operator knows the changes from the beginning. */
    readonly prepare?: (vcsim: Vcsim) => Promise<void>;
    /** Prefix of the environment variables with the address and the credentials of the vCenter. @default 'GOVMOMI' */
    readonly variables?: 'GOVMOMI' | 'VC';
    readonly args?: readonly string[];
  } & Auditing = {},
): Promise<WithGpus> {
  await using stack = new AsyncDisposableStack();
  const vcsim = options.vcsim && stack.use(await startVcsim(options.vcsim));
  if (vcsim !== undefined) await options.prepare?.(vcsim);
  // Leader election is off: tests count the writes of an idle operator, and Lease renewals would add to them.
  const args = ['--leader-elect=false', ...(options.args ?? [])];
  const env = vcsim && variablesOf(vcsim, options.variables ?? 'GOVMOMI');
  const base = await installed(stack, {
    gpuinfo: true,
    audit: options.audit ?? false,
    args,
    ...(env && { env }),
  });
  const { cluster } = base.controlPlane;
  await cluster.kubectl(['create', 'namespace', ML]);
  await cluster.waitFor(`/api/v1/namespaces/${ML}/serviceaccounts/default`, () => true);
  stack.use(await startKwok(cluster));
  const until = (name: string, is: (info: KubeObject) => boolean) =>
    cluster.waitFor(`${PATHS.infos}/${name}`, is);
  const info: WithGpus['info'] = (name, spec) =>
    cluster.api.create(PATHS.infos, {
      apiVersion: 'topology.corinternal.com/v1',
      kind: 'GPUInfo',
      metadata: { name },
      spec: { desAccTime: 100, gpuRequired: true, ...spec },
    });
  const reserved: WithGpus['reserved'] = (name, node) =>
    until(name, (each) => isCurrent(each) && field(each, 'status', 'suitableNodeName') === node);
  const remove: WithGpus['remove'] = async (path) => {
    const deletion = cluster.api.delete(`${path}?gracePeriodSeconds=0&propagationPolicy=Background`);
    await deletion.catch((error: unknown) => {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    });
    await cluster.waitForGone(path);
  };
  const owned = stack.move();
  return {
    ...base,
    vcsim,
    info,
    remove,
    until,
    reserved,
    suitable: async (node) => {
      await info('probe', { nodeSelector: { 'kubernetes.io/hostname': node } });
      await reserved('probe', node);
      await cluster.api.delete(`${PATHS.infos}/probe`);
      await cluster.waitForGone(`${PATHS.infos}/probe`);
    },
    node: (name, gpus = 0, labels = {}) =>
      createNode(cluster, name, { labels, ...(gpus > 0 && { resources: { [RESOURCE]: String(gpus) } }) }),
    pending: (name, reason) =>
      until(
        name,
        (info) =>
          isCurrent(info) &&
          field(info, 'status', 'phase') === 'Pending' &&
          (reason === undefined || reasonOf(info) === reason),
      ),
    pod: (name, node, gpus) =>
      cluster.api.create(PATHS.pods, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { nodeName: node, containers: [{ name: 'a', image: 'a', resources: resourcesOf(gpus) }] },
      }),
    event: async (name, reason) => {
      for await (const { object } of cluster.api.watch(PATHS.events, AbortSignal.timeout(60_000)))
        if (field(object, 'regarding', 'name') === name && field(object, 'reason') === reason)
          return String(field(object, 'note'));
      throw new Error(`no event ${reason} about ${name}`);
    },
    reservation: async (name) => {
      const { uid = '' } = (await cluster.api.get(`${PATHS.infos}/${name}`)).metadata;
      const text = field(await cluster.api.get(PATHS.ledger), 'data', uid);
      return typeof text === 'string' ? JSON.parse(text) : undefined;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function variablesOf(
  { host, username, password, caFile }: Vcsim,
  names: 'GOVMOMI' | 'VC',
): Readonly<Record<string, string>> {
  return names === 'VC'
    ? { VC_HOST: host, VC_USER: username, VC_PASS: password, VC_CA: caFile }
    : { GOVMOMI_URL: host, GOVMOMI_USERNAME: username, GOVMOMI_PASSWORD: password, VC_CA: caFile };
}

const RESOURCE = 'nvidia.com/gpu';

/** Returns the resources of a container that uses GPUs. */
export function resourcesOf(gpus: number) {
  return { limits: { [RESOURCE]: String(gpus) } };
}

/** Returns the reason of the condition Ready of a GPUInfo. */
export function reasonOf(info: KubeObject): unknown {
  return field(conditionOf(info, 'Ready'), 'reason');
}

/** Returns a condition of a GPUInfo; undefined if it is absent. */
export function conditionOf(info: KubeObject, type: string): unknown {
  const conditions = field(info, 'status', 'conditions');
  return Array.isArray(conditions) ? conditions.find((each) => field(each, 'type') === type) : undefined;
}

function isCurrent(info: KubeObject): boolean {
  return field(info, 'status', 'observedGeneration') === field(info, 'metadata', 'generation');
}
