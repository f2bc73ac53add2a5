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
 * What must hold for every reservation that a replica makes, at the moment when it sends the decision: according to what it knows
 * then, because no replica can know what its watches have not delivered yet.
 */

/** A reservation that a replica is about to store. */
interface Choice {
  readonly wanted: Wanted;
  readonly node: KubeObject | undefined;
  readonly was: StoredReservation | undefined;
  readonly is: StoredReservation;
  /** Whether the status shows this reservation: its entry was deleted, and the replica restores it. */
  readonly isRestored: boolean;
  readonly known: Known & { readonly now: number };
  /** All reservations as they would be stored. */
  readonly after: StoredReservations;
}

/** Calls the listener for each decision that a replica is about to send, with what it knows. */
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
    // A request that is sent again contains an earlier decision.
    const text = `${sent.sender} ${sent.body}`;
    if (text === last) return;
    last = text;
    listener(decision.before, decision.after, known);
  });
}

/** Calls the listener for each node that a replica reserves, before it sends the decision. */
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
 * A replica reserves a node only if the node is suitable as far as it knows: GPUs that are free, model, zone, state, maintenance,
 * facts that are current. It reserves none for a request that is paused, but restores what the status shows, until the time that
 * the status shows. A job that runs may extend its time beyond the horizon.
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
 * A node goes to the oldest request that waits and can use it. A changed request that needs no more GPUs than it has is not
 * overtaken: it may choose before those that have none. Neither is one whose job runs, nor one whose reservation is restored.
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

/** Whether a request waits for a node. One whose reservation has ended does not, until its spec changes. */
export function isWaiting({ uid, generation, isPaused }: Wanted, reservations: StoredReservations): boolean {
  const reservation = reservations.get(uid);
  if (isPaused || isLive(reservation)) return false;
  return reservation === undefined || reservation.generation < generation;
}

/** A reservation stays while the replica does not know the state of its node: an outage of vCenter moves nothing. */
export function unknownFactsMoveNothing(truth: GpuTruth): Invariant {
  return {
    name: 'unknown facts move nothing',
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

/** A replica drops the reservation of an object that it does not know only if the object is gone. Its watch may be late. */
export function dropsOnlyWhatIsGone(truth: GpuTruth): Invariant {
  return {
    name: 'reservations of unknown objects stay',
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
