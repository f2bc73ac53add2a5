import { setTimeout as sleep } from 'node:timers/promises';
import { field, type KubeObject, type WatchEvent } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';

/** One of our kinds. `phase` and `message` are the names of the status fields that summarise an object of the kind. */
interface OwnKind {
  readonly path: string;
  readonly kind: string;
  readonly phase: string;
  readonly message: string;
}

const OWN_KINDS: readonly OwnKind[] = [
  {
    path: '/apis/samplecontroller.k8s.io/v1alpha1/vms',
    kind: 'VM',
    phase: 'opStatus',
    message: 'msg',
  },
  {
    path: '/apis/vm.codeconnect.vmworld.com/v1beta1/vmgroups',
    kind: 'VmGroup',
    phase: 'phase',
    message: 'lastMessage',
  },
  {
    path: '/apis/pelotech.ot/v1alpha1/virtualmachines',
    kind: 'VirtualMachine',
    phase: 'phase',
    message: 'message',
  },
  {
    path: '/apis/crd.pelotech.ot/v1alpha1/vmdiskimages',
    kind: 'VMDiskImage',
    phase: 'phase',
    message: 'message',
  },
];

type Print = (line: string) => void;

/**
 * Prints changes in the cluster until the signal aborts: Warning events of all objects, all events of KubeVirt's
 * machines and of our own kinds, and each status change of our own kinds.
 */
export async function watchCluster(cluster: Cluster, signal: AbortSignal, print: Print): Promise<void> {
  const printed = new Set<string>();
  const events = watchForever(cluster, '/api/v1/events', signal, ({ type, object }) => {
    const line = eventLine(object);
    if (type === 'DELETED' || line === undefined || printed.has(line)) return;
    printed.add(line);
    print(line);
  });
  await Promise.all([events, ...OWN_KINDS.map((own) => watchStatus(cluster, own, signal, print))]);
}

async function watchStatus(cluster: Cluster, own: OwnKind, signal: AbortSignal, print: Print): Promise<void> {
  const lastLines = new Map<string, string>();
  await watchForever(cluster, own.path, signal, ({ type, object }) => {
    const { uid } = object.metadata;
    const line = type === 'DELETED' ? `${nameOf(own.kind, object)}: deleted` : statusLine(own, object);
    if (line === undefined || lastLines.get(uid) === line) return;
    lastLines.set(uid, line);
    if (type === 'DELETED') lastLines.delete(uid);
    print(line);
  });
}

/** Watches a path and reconnects, because a watch ends after some minutes or when the API server stops. */
async function watchForever(
  cluster: Cluster,
  path: string,
  signal: AbortSignal,
  onEvent: (event: WatchEvent) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const event of cluster.api.watch(path, signal)) onEvent(event);
    } catch {
      // The API server is down. The supervisor reports that, so this watch only reconnects.
    }
    await sleep(1_000, undefined, { signal }).catch(() => undefined);
  }
}

const OWN_EVENTS: ReadonlySet<string> = new Set(OWN_KINDS.map(({ kind }) => kind));

function eventLine(event: KubeObject): string | undefined {
  const text = (...path: readonly string[]) => String(field(event, ...path) ?? '');
  const kind = text('involvedObject', 'kind');
  const warning = text('type') === 'Warning';
  if (!warning && !kind.startsWith('VirtualMachine') && !OWN_EVENTS.has(kind)) return undefined;
  const name = `${kind} ${text('involvedObject', 'namespace')}/${text('involvedObject', 'name')}`;
  return `${warning ? 'warning: ' : ''}${name}: ${text('reason')}: ${text('message')}`;
}

function statusLine({ kind, phase, message }: OwnKind, object: KubeObject): string | undefined {
  const phaseValue = field(object, 'status', phase);
  if (typeof phaseValue !== 'string') return undefined; // not reconciled yet
  const text = field(object, 'status', message);
  return `${nameOf(kind, object)}: ${phaseValue}${typeof text === 'string' && text !== '' ? ` (${text})` : ''}`;
}

function nameOf(kind: string, { metadata }: KubeObject): string {
  return `${kind} ${metadata.namespace}/${metadata.name}`;
}
