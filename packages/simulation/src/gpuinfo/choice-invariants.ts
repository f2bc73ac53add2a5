import { GPUInfo } from '@vmwright/operator';
import type { KubeObject } from '@vmwright/runtime';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { byUid, numberAt, textAt } from '../scenario/stored-objects.ts';
import type { GpuTruth } from './gpu-truth.ts';
import { isLive, type StoredReservation, type StoredReservations } from './reservations.ts';
import {
  BEYOND_HORIZON,
  blockedBy,
  type Known,
  obstacle,
  type Wanted,
  wantedBy,
  windowFrom,
} from './rules.ts';

/*
 * Invariants of every reservation that a replica makes. They compare the reservation with the content of the replica's
 * caches at the time of the request, because the replica cannot know changes that its watches have not delivered yet.
 */

/** A reservation that a replica is about to store. */
interface Choice {
  readonly wanted: Wanted;
  readonly node: KubeObject | undefined;
  readonly was: StoredReservation | undefined;
  readonly is: StoredReservation;
  /** Whether the replica restores a reservation from the status, because its entry in the ConfigMap was deleted. */
  readonly isRestored: boolean;
  readonly known: Known & { readonly now: number };
  /** All reservations as the replica is about to store them. */
  readonly after: StoredReservations;
}

/**
 * Calls the listener before a replica sends a change of the reservations. `known` is the content of the replica's
 * caches.
 */
function onDecision(
  { reservations, knowledge }: GpuTruth,
  { traffic }: Truth,
  listener: (before: StoredReservations, after: StoredReservations, known: Choice['known']) => void,
): void {
  let last = '';
  traffic.onSend((sent) => {
    const decision = reservations.decision(sent);
    const known = decision && knowledge.of(sent.sender);
    if (decision === undefined || known === undefined) return;
    // Skips a retry, which has the same sender and body as the previous request.
    const text = `${sent.sender} ${sent.body}`;
    if (text === last) return;
    last = text;
    listener(decision.before, decision.after, known);
  });
}

/** Calls the listener before a replica sends a new reservation, or changes the node or the number of GPUs of one. */
function onChoice(gpuTruth: GpuTruth, truth: Truth, listener: (choice: Choice) => void): void {
  onDecision(gpuTruth, truth, (before, after, known) => {
    for (const info of known.infos) {
      const wanted = wantedBy(info);
      const [was, is] = [before.get(wanted.uid), after.get(wanted.uid)];
      if (!isLive(is) || (isLive(was) && was.node === is.node && was.gpus === is.gpus)) continue;
      const isRestored = was === undefined && isReported(info, is);
      listener({ wanted, node: nodeIn(known, is.node), was, is, isRestored, known, after });
    }
  });
}

function isReported(info: KubeObject, { node, generation, until }: StoredReservation): boolean {
  const shown = textAt(info, 'status', 'reservedUntil');
  return (
    textAt(info, 'status', 'phase') === 'Reserved' &&
    textAt(info, 'status', 'suitableNodeName') === node &&
    numberAt(info, 'status', 'observedGeneration') === generation &&
    (shown === undefined ? undefined : Date.parse(shown)) === until
  );
}

function nodeIn({ nodes }: Known, name: string): KubeObject | undefined {
  return nodes.find(({ metadata }) => metadata.name === name);
}

/**
 * A replica reserves a node only if its caches show that the node is suitable:
 * - GPUs, model and zone match the request.
 * - Jobs can start on the node.
 * - No maintenance interrupts the job.
 * - The data from vCenter is not stale.
 *
 * For a paused GPUInfo, a replica may only restore the reservation that the status shows. If a job is already running,
 * its reservation may be extended beyond `HORIZON_MS`.
 */
export function choosesSuitableNodes(truth: GpuTruth): Invariant {
  return {
    name: 'only suitable nodes are reserved',
    watch: (common, violated) =>
      onChoice(truth, common, ({ wanted, node, was, is, isRestored, known, after }) => {
        const what = `${is.node} for ${wanted.name} (${wanted.uid})`;
        if (wanted.isPaused && !isRestored) violated(`${what} is reserved although the request is paused`);
        if (node === undefined) {
          violated(`${what} is reserved but does not exist`);
          return;
        }
        const { now } = known;
        const window = isRestored ? { start: now, end: is.until ?? now } : windowFrom(wanted, now);
        const found = obstacle(known, after, wanted, node, window);
        const isExtended = isLive(was) && is.inUse && was.node === is.node;
        if (found === undefined || (found === BEYOND_HORIZON && isExtended)) return;
        violated(`${what} is reserved although ${found}`);
      }),
  };
}

/**
 * A node goes to the oldest waiting GPUInfo that can use it. A GPUInfo may get a node before older GPUInfos in three
 * cases: it needs no more GPUs than it already holds, its job runs, or its reservation is restored.
 */
export function oldestFirst(truth: GpuTruth): Invariant {
  return {
    name: 'the oldest request is answered first',
    watch: (common, violated) =>
      onChoice(truth, common, ({ wanted, node, was, is, isRestored, known, after }) => {
        if (node === undefined || isRestored || (isLive(was) && (is.inUse || wanted.gpus <= was.gpus)))
          return;
        const without = new Map(after);
        without.delete(wanted.uid);
        for (const info of known.infos) {
          const other = wantedBy(info);
          if (!isWaiting(other, after) || other.age >= wanted.age) continue;
          if (obstacle(known, without, other, node, windowFrom(other, known.now)) === undefined)
            violated(`${is.node} goes to ${wanted.name} although ${other.name} is older and waits for it`);
        }
      }),
  };
}

/** Whether a GPUInfo waits for a node. If its reservation has ended, it waits again only after a change of its spec. */
export function isWaiting({ uid, generation, isPaused }: Wanted, reservations: StoredReservations): boolean {
  const reservation = reservations.get(uid);
  if (isPaused || isLive(reservation)) return false;
  return reservation === undefined || reservation.generation < generation;
}

/**
 * While the data about a node's host is stale, for example in an outage of vCenter, reservations stay on the node.
 * Exceptions: the job has ended, the reserved time has passed, or jobs cannot start on the node according to
 * Kubernetes.
 */
export function unknownFactsMoveNothing(truth: GpuTruth): Invariant {
  return {
    name: 'stale facts move no reservation',
    watch: (common, violated) =>
      onDecision(truth, common, (before, after, known) => {
        for (const { metadata } of known.infos) {
          const { uid = '' } = metadata;
          const [was, is] = [before.get(uid), after.get(uid)];
          const node = isLive(was) ? nodeIn(known, was.node) : undefined;
          if (!isLive(was) || node === undefined || known.hosts.hostOf(node) !== 'unknown') continue;
          const isMoved = is === undefined || (isLive(is) && is.node !== was.node);
          const isOver = truth.jobs.hasEnded(uid) || (was.until !== undefined && was.until <= known.now);
          if (isMoved && !isOver && blockedBy(node) === undefined)
            violated(`${was.key} (${uid}) leaves ${was.node}, whose facts are not current`);
        }
      }),
  };
}

/**
 * If an object is missing in a replica's cache, the watch may just be late. The replica drops the object's reservation
 * only if the object is really gone.
 */
export function dropsOnlyWhatIsGone(truth: GpuTruth): Invariant {
  return {
    name: 'reservations of uncached objects stay',
    watch: (common, violated) =>
      onDecision(truth, common, (before, after, known) => {
        for (const [uid, { key }] of before) {
          if (after.has(uid) || known.infos.some(({ metadata }) => metadata.uid === uid)) continue;
          if (byUid(common.server, GPUInfo, uid) !== undefined)
            violated(`${key} (${uid}) exists, but its reservation is dropped`);
        }
      }),
  };
}
