import {
  annotationsChanged,
  any,
  type Client,
  type Condition,
  generationChanged,
  Manager,
  NotFoundError,
  type ReconcileContext,
  requeueAfter,
  setCondition,
  watch,
} from '@vmwright/runtime';
import type { Simulation } from '../world/simulation.ts';
import type { Exclusion } from './exclusion.ts';
import type { Findings } from './findings.ts';
import { ConfigMap, FINALIZER, IN_USE, NOTE, Probe, Setting, Widget } from './kinds.ts';
import type { Life } from './life.ts';
import type { Outside } from './outside.ts';
import { BACKOFF, Retries } from './retries.ts';
import type { Telling } from './telling.ts';

export const LEASE = 'program';
/** Fewer looks at the lease than by default: at rest they are most of what happens. */
export const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 5_000 };

/** Longer than a lead that was lost takes to be won again. */
const OPERATION_MS = 33_000;

const OWN_WRITES = 'a replica reads its own writes';

/** What the program tells of what it does. */
export interface Observers {
  readonly simulation: Simulation;
  readonly findings: Findings;
  readonly exclusion: Exclusion;
  readonly outside: Outside;
  readonly telling: Telling;
  /** One time in so many, somebody writes to the child of this name right now. */
  readonly meddle: (name: string, oneIn: number) => void;
  /** Whether reconciles of probes fail at this moment. */
  readonly probesFail: () => boolean;
  /** Told of each reconcile that begins. */
  readonly begun: (what: string) => void;
  /** Who has made a program, for looks into its caches. */
  readonly made: (life: Life, manager: Manager) => void;
}

/** A program that does all as one should, with everything that the runtime offers. */
export function program(life: Life, observers: Observers): Manager {
  const { world, access, log } = life;
  const election = { name: LEASE, identity: life.name, ...TIMES };
  const manager = new Manager({ world, access, name: 'program', log, election });
  life.simulated.work.observe(manager);
  observers.made(life, manager);
  manager.caches.get(Setting, { labelSelector: 'use=yes' });
  manager.caches.get(ConfigMap).subscribe(({ key, type, object }) => {
    if (type === 'removed') return;
    notOlder(life, observers, `ConfigMap ${key}`, object);
    if (life.deleted.has(object.metadata.uid ?? ''))
      observers.findings.add(OWN_WRITES, `${life.name} sees ConfigMap ${key}, which it has itself deleted`);
  });
  manager.control<Widget>({
    for: Widget,
    when: any(generationChanged, annotationsChanged),
    owns: [ConfigMap],
    watches: [
      watch(Setting, ({ metadata: { namespace, name } }) => [`${namespace}/${name}`], generationChanged),
    ],
    concurrency: 2,
    timeoutMs: 40_000,
    backoff: BACKOFF,
    finalizer: { name: FINALIZER, finalize: (widget, context) => finalize(life, observers, widget, context) },
    reconcile: (widget, context) => reconcile(life, observers, widget, context),
  });
  const probes = manager.control<Probe>({
    for: Probe,
    concurrency: 4,
    backoff: BACKOFF,
    reconcile: (probe, context) => tryProbe(life, observers, retries, probe, context),
  });
  manager.job({
    name: 'sweep',
    everyMs: 15_000,
    reads: [ConfigMap],
    run: async ({ cache, assertMayAct }) => {
      using _ = observers.exclusion.begin(life, 'sweep');
      observers.simulation.counts.add('a job ran');
      cache(ConfigMap);
      assertMayAct();
      await observers.outside.look(life);
    },
  });
  const retries = new Retries(life, probes.queue, observers.findings);
  return manager;
}

async function reconcile(
  life: Life,
  observers: Observers,
  widget: Widget,
  context: ReconcileContext<Widget>,
): Promise<void> {
  const { outside, telling, simulation } = observers;
  const { key, client, signal } = context;
  using _ = begin(life, observers, key);
  notOlder(life, observers, key, widget);
  context.assertMayAct();
  await outside.make(life, widget);
  void operate(life, observers, context);
  const { namespace, name, uid = '' } = widget.metadata;
  const ref = { ...(namespace !== undefined && { namespace }), name };
  const child = context.cache(ConfigMap).get(ref);
  if (child !== undefined) notOlder(life, observers, `ConfigMap ${key}`, child);
  const setting = context.cache(Setting).get(ref);
  const wanted = wantsChild(widget);
  const made = madeOf(widget, setting, wanted ? child?.data?.note : undefined);
  if (!wanted) {
    if (child !== undefined) {
      observers.meddle(name, 1);
      await deleteChild(life, observers, child, client);
    }
  } else if (child?.data?.text !== widget.spec.text || child.metadata.ownerReferences?.[0]?.uid !== uid) {
    observers.meddle(name, 3);
    const applied = await client.apply(
      ConfigMap,
      { metadata: { ...ref, ownerReferences: [ownerOf(widget)] }, data: { text: widget.spec.text } },
      { signal },
    );
    wrote(life, applied);
  }
  if (widget.status?.made !== made) {
    const note = `${made} of generation ${widget.metadata.generation}`;
    context.event(widget, { type: 'Normal', reason: 'Made', note });
    telling.tells(uid, note, !simulation.network.faulty && !life.stop.signal.aborted, context.fence.signal);
  }
  const { generation: observedGeneration = 0 } = widget.metadata;
  const ready: Omit<Condition, 'lastTransitionTime'> = {
    type: 'Ready',
    ...(setting === undefined
      ? { status: 'False', reason: 'NoSetting', message: 'It has no setting; make one of its name.' }
      : { status: 'True', reason: 'Made', message: 'It is made.' }),
  };
  const conditions = setCondition(widget.status?.conditions, ready, context.now());
  wrote(life, await context.setStatus(widget, { made, observedGeneration, conditions }));
}

/** Goes on after its reconcile has ended, as the clone of a machine does: a lost lead may be won again by then. */
async function operate(
  life: Life,
  { simulation, outside }: Observers,
  { key, fence: term }: ReconcileContext<Widget>,
): Promise<void> {
  using fence = term.nested();
  const { process } = life.simulated;
  // Without a choice: with more of them, the seeds that once found something would tell other histories.
  await new Promise<void>((resolve) => {
    simulation.schedule.after(OPERATION_MS, () => process.enter(resolve), process);
  });
  if (fence.signal.aborted) return simulation.counts.add('an operation was cancelled with its term');
  try {
    fence.assertOpen();
  } catch {
    return; // the signal was late
  }
  outside.late(life, `operate on ${key}`);
}

async function finalize(
  life: Life,
  observers: Observers,
  widget: Widget,
  { key, assertMayAct }: ReconcileContext<Widget>,
): Promise<void | ReturnType<typeof requeueAfter>> {
  using _ = begin(life, observers, key);
  notOlder(life, observers, key, widget);
  assertMayAct();
  const outcome = await observers.outside.release(life, widget);
  return outcome === 'done' ? undefined : requeueAfter(1_500);
}

async function tryProbe(
  life: Life,
  observers: Observers,
  retries: Retries,
  probe: Probe,
  { key, setStatus }: ReconcileContext<Probe>,
): Promise<void> {
  observers.begun(`${key} of generation ${probe.metadata.generation}`);
  using _ = observers.exclusion.begin(life, `probe ${key}`);
  retries.tries(key);
  try {
    if (observers.probesFail()) throw new Error('it fails for now');
    notOlder(life, observers, `Probe ${key}`, probe);
    wrote(life, await setStatus(probe, { observedGeneration: probe.metadata.generation ?? 0 }));
    retries.succeeded(key);
  } catch (error) {
    observers.simulation.counts.add('a probe failed');
    retries.failed(key);
    throw error;
  }
}

/** One of the texts stands for a widget without a child. */
export function wantsChild({ spec }: { readonly spec: { readonly text: string } }): boolean {
  return !spec.text.endsWith('3');
}

async function deleteChild(
  life: Life,
  { simulation }: Observers,
  { metadata }: ConfigMap,
  client: Client,
): Promise<void> {
  const { uid = '' } = metadata;
  try {
    await client.delete(ConfigMap, metadata, { uid });
  } catch (error) {
    if (error instanceof NotFoundError) return; // gone, but not by us: the cache learns it from its watch
    throw error;
  }
  simulation.counts.add('a child was deleted by its controller');
  life.deleted.add(uid);
}

/** What should be made, by all that counts. */
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

function begin(life: Life, observers: Observers, key: string): Disposable {
  observers.begun(key);
  return observers.exclusion.begin(life, key);
}

function wrote(life: Life, { metadata: { uid = '', resourceVersion } }: Pick<Widget, 'metadata'>): void {
  life.wrote.set(uid, Math.max(life.wrote.get(uid) ?? 0, Number(resourceVersion)));
}

/** Read your own writes. */
function notOlder(
  life: Life,
  { findings }: Observers,
  what: string,
  { metadata }: Pick<Widget, 'metadata'>,
): void {
  const own = life.wrote.get(metadata.uid ?? '') ?? 0;
  if (Number(metadata.resourceVersion) < own)
    findings.add(
      OWN_WRITES,
      `${life.name} sees ${what}@${metadata.resourceVersion}, and has itself written @${own}`,
    );
}

function ownerOf({ metadata: { name, uid = '' } }: Widget) {
  const { group, version, kind } = Widget;
  return { apiVersion: `${group}/${version}`, kind, name, uid, controller: true, blockOwnerDeletion: true };
}
