import { GPUInfo } from '@vmwright/operator';
import type { Invariant } from '../invariants/invariant.ts';
import { byUid, onChange } from '../scenario/stored-objects.ts';
import type { GpuTruth } from './gpu-truth.ts';
import { INFO_UID, Node, Pod } from './kinds.ts';
import { MAX_GPUS } from './nodes.ts';
import { SKEW_MS } from './program.ts';
import { isLive, type StoredReservation, type StoredReservations } from './reservations.ts';

/** Maximum time from the binding of a pod until the operator knows about the binding, even if a watch is late. */
const KNOWN_MS = 40_000;

/*
 * Invariants of every stored version of the reservations. They compare the reservations with the objects in the API
 * server, not with the caches of a replica.
 */

/**
 * A new reservation never exceeds the free GPUs of its pool, which is a node or a vSphere host. Existing reservations
 * may exceed the pool after administrators have removed GPUs or moved a machine to another host. The operator moves
 * such reservations afterwards, but never while their jobs run.
 */
export function gpusAreReservedOnce({ reservations, hosts }: GpuTruth): Invariant {
  return {
    name: 'no GPU is reserved twice',
    watch: (_, violated) => {
      const sizes = new Map(hosts.pools.map(({ id, gpus }) => [`host/${id}`, gpus]));
      reservations.listen((before, after) => {
        for (const [uid, reservation] of after) {
          const { pool } = reservation;
          if (pool === undefined || !isGain(before.get(uid), reservation)) continue;
          const sum = reservedIn(after, pool);
          const size = sizes.get(pool) ?? MAX_GPUS;
          if (sum > size)
            violated(`${reservation.key} (${uid}) gets GPUs of ${pool}: ${sum} of ${size} are reserved`);
        }
      });
    },
  };
}

function isGain(before: StoredReservation | undefined, after: StoredReservation): boolean {
  if (!isLive(after)) return false;
  return (
    !isLive(before) || before.node !== after.node || before.pool !== after.pool || after.gpus > before.gpus
  );
}

function reservedIn(reservations: StoredReservations, pool: string): number {
  let sum = 0;
  for (const each of reservations.values()) if (isLive(each) && each.pool === pool) sum += each.gpus;
  return sum;
}

/**
 * After the reservation of an object has ended, the object gets another one only after a change of its spec. After such
 * a change, a replica that has not received the new spec yet may reserve for the old one.
 */
export function endedStaysEnded({ reservations }: GpuTruth): Invariant {
  return {
    name: 'an ended reservation is not made again',
    watch: ({ server }, violated) => {
      const ended = new Map<string, number>();
      reservations.listen((_before, after) => {
        for (const [uid, reservation] of after) {
          const { key, generation } = reservation;
          const last = ended.get(uid) ?? 0;
          const isChanged = byUid(server, GPUInfo, uid)?.metadata.generation !== last;
          if (isLive(reservation) && generation <= last && !isChanged)
            violated(
              `${key} (${uid}) is reserved again for generation ${generation}, whose reservation has ended`,
            );
          if (!isLive(reservation)) ended.set(uid, Math.max(last, generation));
        }
      });
    },
  };
}

/**
 * While a job runs, its reservation stays on its node. The reservation ends only after the job has ended or the
 * reserved time has passed. It moves only if the node is gone or no pod of the job is bound to the node. Pods that were
 * bound less than `KNOWN_MS` ago are ignored, because a replica may not know them yet.
 */
export function runningJobsKeepTheirNode({ reservations, jobs, now }: GpuTruth): Invariant {
  return {
    name: 'the reservation of a running job stays on its node',
    watch: ({ server }, violated) => {
      const gone = new Set<string>();
      onChange(server, Node, (before, after) => {
        if (before !== undefined && after === undefined) gone.add(before.metadata.name);
      });
      /** Time at which a pod of a GPUInfo's job was bound to a node, by UID of the GPUInfo and name of the node. */
      const boundAt = new Map<string, number>();
      onChange(server, Pod, (_, after) => {
        const uid = after?.metadata.annotations?.[INFO_UID];
        for (const node of uid === undefined ? [] : jobs.nodesOf(uid)) {
          const key = `${uid} ${node}`;
          if (!boundAt.has(key)) boundAt.set(key, now());
        }
        for (const key of boundAt.keys()) {
          const [bound = '', node = ''] = key.split(' ');
          if (!jobs.isRunningOn(bound, node)) boundAt.delete(key);
        }
      });
      const isKnownOn = (uid: string, node: string) =>
        now() - (boundAt.get(`${uid} ${node}`) ?? Number.POSITIVE_INFINITY) >= KNOWN_MS;
      reservations.listen((before, after) => {
        for (const [uid, was] of before) {
          if (!isLive(was) || !was.inUse || !jobs.isActive(uid) || jobs.hasEnded(uid)) continue;
          if ((was.until ?? Number.POSITIVE_INFINITY) <= now() + SKEW_MS) continue;
          const is = after.get(uid);
          if (is?.ended === 'JobEnded') violated(`${was.key} (${uid}) has ended, but its job runs`);
          const isMoved = is === undefined || (isLive(is) && is.node !== was.node);
          if (
            isMoved &&
            isKnownOn(uid, was.node) &&
            !gone.has(was.node) &&
            byUid(server, GPUInfo, uid) !== undefined
          )
            violated(`${was.key} (${uid}) moves from ${was.node} to ${is?.node} while its job runs`);
        }
      });
    },
  };
}

/**
 * The reservation of an object never returns to an older spec, even if a new leader does not know the newest spec yet.
 */
export function neverGoesBack({ reservations }: GpuTruth): Invariant {
  return {
    name: 'a reservation never goes back to an older spec',
    watch: (_, violated) =>
      reservations.listen((before, after) => {
        for (const [uid, { key, generation }] of after) {
          const was = before.get(uid)?.generation ?? 0;
          if (generation < was) violated(`${key} (${uid}) goes back from generation ${was} to ${generation}`);
        }
      }),
  };
}

/** A reservation ends with the reason JobEnded only after its job ran and ended. */
export function endsWithItsJob({ reservations, jobs }: GpuTruth): Invariant {
  return {
    name: 'a reservation ends only with its job',
    watch: (_, violated) =>
      reservations.listen((before, after) => {
        for (const [uid, { key, ended }] of after)
          if (ended === 'JobEnded' && isLive(before.get(uid)) && !jobs.hasEnded(uid))
            violated(`${key} (${uid}) has ended, but none of its jobs has`);
      }),
  };
}

/**
 * While an object exists and its spec does not change, its ended reservation stays stored. After an object is gone, its
 * reservation is dropped, at the latest when the faults have stopped.
 */
export function droppedWithItsObject({ reservations }: GpuTruth): Invariant {
  return {
    name: 'a reservation exists as long as its object',
    watch: ({ server }, violated) =>
      reservations.listen((before, after) => {
        for (const [uid, was] of before) {
          const info = byUid(server, GPUInfo, uid);
          if (after.has(uid) || info === undefined) continue;
          // Checks only ended reservations. Others may be dropped if no node is suitable any more.
          if (!isLive(was) && was.generation === info.metadata.generation)
            violated(`${was.key} (${uid}) exists, but its reservation is dropped`);
        }
      }),
    healed: function* ({ server }) {
      for (const [uid, { key }] of reservations.current)
        if (byUid(server, GPUInfo, uid) === undefined) yield `${key} (${uid}) is gone, but has a reservation`;
    },
  };
}
