import {
  annotationsChanged,
  any,
  type Client,
  type Condition,
  ConfigMap,
  generationChanged,
  Manager,
  NotFoundError,
  type ReconcileContext,
  requeueAfter,
  setCondition,
  watch,
} from '@vmwright/runtime';
import type { Simulation } from '../world/simulation.ts';
import type { EventChecks } from './event-checks.ts';
import type { Exclusion } from './exclusion.ts';
import type { ExternalSystem } from './external-system.ts';
import { FINALIZER, IN_USE, NOTE, Probe, Setting, Widget } from './kinds.ts';
import type { Replica } from './replica.ts';
import { BACKOFF, Retries } from './retries.ts';
import type { Violations } from './violations.ts';

export const LEASE = 'program';
/** Lease times. Renewals are less frequent than by default, because most events of an idle program are renewals. */
export const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 5_000 };

/** Duration of the operation in `operate`: longer than a replica needs to lose leadership and become leader again. */
const OPERATION_MS = 33_000;

const OWN_WRITES = 'a replica reads its own writes';

/** Observers and faults that the simulation passes to the simulated program. */
export interface Observers {
  readonly simulation: Simulation;
  readonly violations: Violations;
  readonly exclusion: Exclusion;
  readonly external: ExternalSystem;
  readonly eventChecks: EventChecks;
  /** Writes to the ConfigMap of this name as another client would, with probability 1/`oneIn`. */
  readonly interfere: (name: string, oneIn: number) => void;
  /** Whether reconciles of probes fail right now. */
  readonly probesFail: () => boolean;
  /** Called for each reconcile that starts. */
  readonly onReconcile: (what: string) => void;
  /** Called with each manager, for checks of its caches. */
  readonly onManager: (replica: Replica, manager: Manager) => void;
}

/** A correct program that uses every feature of the runtime. */
export function program(replica: Replica, observers: Observers): Manager {
  const { world, access, log } = replica;
  const election = { name: LEASE, identity: replica.name, ...TIMES };
  const manager = new Manager({ world, access, name: 'program', log, election });
  replica.simulated.work.observe(manager);
  observers.onManager(replica, manager);
  manager.caches.get(Setting, { labelSelector: 'use=yes' });
  manager.caches.get(ConfigMap).subscribe(({ key, type, object }) => {
    if (type === 'removed') return;
    notOlder(replica, observers, `ConfigMap ${key}`, object);
    if (replica.deleted.has(object.metadata.uid ?? ''))
      observers.violations.add(OWN_WRITES, `${replica.name} sees ConfigMap ${key}, which it deleted`);
  });
  manager.control<Widget>({
    for: Widget,
    predicate: any(generationChanged, annotationsChanged),
    owns: [ConfigMap],
    watches: [
      watch(Setting, ({ metadata: { namespace, name } }) => [`${namespace}/${name}`], generationChanged),
    ],
    concurrency: 2,
    timeoutMs: 40_000,
    backoff: BACKOFF,
    finalizer: {
      name: FINALIZER,
      finalize: (widget, context) => finalize(replica, observers, widget, context),
    },
    reconcile: (widget, context) => reconcile(replica, observers, widget, context),
  });
  const probes = manager.control<Probe>({
    for: Probe,
    concurrency: 4,
    backoff: BACKOFF,
    reconcile: (probe, context) => tryProbe(replica, observers, retries, probe, context),
  });
  manager.job({
    name: 'gc',
    everyMs: 15_000,
    reads: [ConfigMap],
    run: async ({ cache, assertLeader }) => {
      using _ = observers.exclusion.begin(replica, 'gc');
      observers.simulation.counts.add('a job ran');
      cache(ConfigMap);
      assertLeader();
      await observers.external.list(replica);
    },
  });
  const retries = new Retries(replica, probes.queue, observers.violations);
  return manager;
}

async function reconcile(
  replica: Replica,
  observers: Observers,
  widget: Widget,
  context: ReconcileContext<Widget>,
): Promise<void> {
  const { external, eventChecks, simulation } = observers;
  const { key, client, signal } = context;
  using _ = begin(replica, observers, key);
  notOlder(replica, observers, key, widget);
  context.assertLeader();
  await external.make(replica, widget);
  void operate(replica, observers, context);
  const { namespace, name, uid = '' } = widget.metadata;
  const ref = { ...(namespace !== undefined && { namespace }), name };
  const child = context.cache(ConfigMap).get(ref);
  if (child !== undefined) notOlder(replica, observers, `ConfigMap ${key}`, child);
  const setting = context.cache(Setting).get(ref);
  const wanted = wantsChild(widget);
  const made = madeOf(widget, setting, wanted ? child?.data?.note : undefined);
  if (!wanted) {
    if (child !== undefined) {
      observers.interfere(name, 1);
      await deleteChild(replica, observers, child, client);
    }
  } else if (child?.data?.text !== widget.spec.text || child.metadata.ownerReferences?.[0]?.uid !== uid) {
    observers.interfere(name, 3);
    const applied = await client.apply(
      ConfigMap,
      { metadata: { ...ref, ownerReferences: [ownerOf(widget)] }, data: { text: widget.spec.text } },
      { signal },
    );
    wrote(replica, applied);
  }
  if (widget.status?.made !== made) {
    const note = `${made} of generation ${widget.metadata.generation}`;
    context.event(widget, { type: 'Normal', reason: 'Made', note });
    eventChecks.recorded(
      uid,
      note,
      !simulation.network.faulty && !replica.stop.signal.aborted,
      context.fence.signal,
    );
  }
  const { generation: observedGeneration = 0 } = widget.metadata;
  const ready: Omit<Condition, 'lastTransitionTime'> = {
    type: 'Ready',
    ...(setting === undefined
      ? { status: 'False', reason: 'NoSetting', message: 'There is no Setting of the same name; create one.' }
      : { status: 'True', reason: 'Made', message: 'The widget is made.' }),
  };
  const conditions = setCondition(widget.status?.conditions, ready, context.now());
  wrote(replica, await context.setStatus(widget, { made, observedGeneration, conditions }));
}

/**
 * Simulates an operation that continues after its reconcile has returned, like the clone of a machine. The
 * replica may have lost and regained leadership before the operation ends.
 */
async function operate(
  replica: Replica,
  { simulation, external }: Observers,
  { key, fence: term }: ReconcileContext<Widget>,
): Promise<void> {
  using fence = term.nested();
  const { process } = replica.simulated;
  // The delay is fixed, because a random choice would change the runs of the regression seeds.
  await new Promise<void>((resolve) => {
    simulation.schedule.after(OPERATION_MS, () => process.enter(resolve), process);
  });
  if (fence.signal.aborted) return simulation.counts.add('an operation was cancelled with its term');
  try {
    fence.assertOpen();
  } catch {
    return; // the leadership term has ended, but its abort signal is late
  }
  external.late(replica, `operate on ${key}`);
}

async function finalize(
  replica: Replica,
  observers: Observers,
  widget: Widget,
  { key, assertLeader }: ReconcileContext<Widget>,
): Promise<void | ReturnType<typeof requeueAfter>> {
  using _ = begin(replica, observers, key);
  notOlder(replica, observers, key, widget);
  assertLeader();
  const outcome = await observers.external.release(replica, widget);
  return outcome === 'done' ? undefined : requeueAfter(1_500);
}

async function tryProbe(
  replica: Replica,
  observers: Observers,
  retries: Retries,
  probe: Probe,
  { key, setStatus }: ReconcileContext<Probe>,
): Promise<void> {
  observers.onReconcile(`${key} of generation ${probe.metadata.generation}`);
  using _ = observers.exclusion.begin(replica, `probe ${key}`);
  retries.attempt(key);
  try {
    if (observers.probesFail()) throw new Error('the probe fails');
    notOlder(replica, observers, `Probe ${key}`, probe);
    wrote(replica, await setStatus(probe, { observedGeneration: probe.metadata.generation ?? 0 }));
    retries.succeeded(key);
  } catch (error) {
    observers.simulation.counts.add('a probe failed');
    retries.failed(key);
    throw error;
  }
}

/** Whether a widget must have a ConfigMap: true unless `spec.text` ends with 3. */
export function wantsChild({ spec }: { readonly spec: { readonly text: string } }): boolean {
  return !spec.text.endsWith('3');
}

async function deleteChild(
  replica: Replica,
  { simulation }: Observers,
  { metadata }: ConfigMap,
  client: Client,
): Promise<void> {
  const { uid = '' } = metadata;
  try {
    await client.delete(ConfigMap, metadata, { uid });
  } catch (error) {
    if (error instanceof NotFoundError) return; // another client deleted the ConfigMap; the watch will update the cache
    throw error;
  }
  simulation.counts.add('a child was deleted by its controller');
  replica.deleted.add(uid);
}

/** Returns the correct `status.made` of a widget. */
export function madeOf(
  widget: { readonly spec: { readonly text: string }; readonly metadata: Widget['metadata'] },
  setting: { readonly spec: { readonly value: string } } | undefined,
  note: string | undefined,
): string {
  const { spec, metadata } = widget;
  return [spec.text, metadata.annotations?.[NOTE] ?? '-', setting?.spec.value ?? '-', note ?? '-'].join(' ');
}

export function isInUse(labels: Readonly<Record<string, string>> | undefined): boolean {
  return labels?.use === IN_USE.use;
}

function begin(replica: Replica, observers: Observers, key: string): Disposable {
  observers.onReconcile(key);
  return observers.exclusion.begin(replica, key);
}

function wrote(
  replica: Replica,
  { metadata: { uid = '', resourceVersion } }: Pick<Widget, 'metadata'>,
): void {
  replica.wrote.set(uid, Math.max(replica.wrote.get(uid) ?? 0, Number(resourceVersion)));
}

/** Reports a violation if an object is older than this replica's own last write. */
function notOlder(
  replica: Replica,
  { violations }: Observers,
  what: string,
  { metadata }: Pick<Widget, 'metadata'>,
): void {
  const own = replica.wrote.get(metadata.uid ?? '') ?? 0;
  if (Number(metadata.resourceVersion) < own)
    violations.add(
      OWN_WRITES,
      `${replica.name} sees ${what}@${metadata.resourceVersion}, but has written @${own}`,
    );
}

function ownerOf({ metadata: { name, uid = '' } }: Widget) {
  const { group, version, kind } = Widget;
  return { apiVersion: `${group}/${version}`, kind, name, uid, controller: true, blockOwnerDeletion: true };
}
