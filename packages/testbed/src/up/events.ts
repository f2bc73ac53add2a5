import { setTimeout as sleep } from 'node:timers/promises';
import { field, type KubeObject, type WatchEvent } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';

/** A kind of ours, with the fields that summarise its status. */
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
];

type Say = (line: string) => void;

/**
 * Prints what happens in the cluster until the signal: events of machines and all warnings, and each change of status of our
 * own kinds.
 */
export async function watchCluster(cluster: Cluster, signal: AbortSignal, say: Say): Promise<void> {
  const told = new Set<string>();
  const events = follow(cluster, '/api/v1/events', signal, ({ type, object }) => {
    const line = eventLine(object);
    if (type === 'DELETED' || line === undefined || told.has(line)) return;
    told.add(line);
    say(line);
  });
  await Promise.all([events, ...OWN_KINDS.map((own) => watchStatus(cluster, own, signal, say))]);
}

async function watchStatus(cluster: Cluster, own: OwnKind, signal: AbortSignal, say: Say): Promise<void> {
  const shown = new Map<string, string>();
  await follow(cluster, own.path, signal, ({ type, object }) => {
    const { uid } = object.metadata;
    const line = type === 'DELETED' ? `${nameOf(own.kind, object)}: deleted` : statusLine(own, object);
    if (line === undefined || shown.get(uid) === line) return;
    shown.set(uid, line);
    if (type === 'DELETED') shown.delete(uid);
    say(line);
  });
}

/** Watches a path again and again: a watch ends with its API server, and after some minutes. */
async function follow(
  cluster: Cluster,
  path: string,
  signal: AbortSignal,
  take: (event: WatchEvent) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const event of cluster.api.watch(path, signal)) take(event);
    } catch {
      // The API server is away; its own end is reported by the supervisor.
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
  const is = field(object, 'status', phase);
  if (typeof is !== 'string') return undefined; // the operator has not seen it yet
  const told = field(object, 'status', message);
  return `${nameOf(kind, object)}: ${is}${typeof told === 'string' && told !== '' ? ` (${told})` : ''}`;
}

function nameOf(kind: string, { metadata }: KubeObject): string {
  return `${kind} ${metadata.namespace}/${metadata.name}`;
}
