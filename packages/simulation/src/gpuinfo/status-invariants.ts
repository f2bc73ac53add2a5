import { GPUInfo } from '@vmwright/operator';
import type { Invariant } from '../invariants/invariant.ts';
import { keyOf, numberAt, onChange, phaseIn, textAt } from '../scenario/stored-objects.ts';
import type { GpuTruth } from './gpu-truth.ts';
import { isLive } from './reservations.ts';

/**
 * A status shows only a stored reservation of its own object, or the end of such a reservation. The status may lag
 * behind the stored reservations, but never be ahead.
 */
export function statusFollowsLedger({ reservations }: GpuTruth): Invariant {
  return {
    name: 'a status shows a stored reservation',
    watch: ({ server }, violated) => {
      /**
       * By UID of the GPUInfo: the nodes that were reserved for it, with the lowest generation for which each was
       * reserved.
       */
      const reserved = new Map<string, Map<string, number>>();
      const ended = new Set<string>();
      reservations.listen((_, after) => {
        for (const [uid, reservation] of after) {
          const nodes = reserved.get(uid) ?? new Map<string, number>();
          reserved.set(uid, nodes);
          const { node, generation } = reservation;
          if (isLive(reservation)) nodes.set(node, Math.min(nodes.get(node) ?? generation, generation));
          else ended.add(uid);
        }
      });
      onChange(server, GPUInfo, (_, after) => {
        const { uid = '' } = after?.metadata ?? {};
        if (after === undefined) return;
        const phase = phaseIn(after);
        if (phase === 'Ended' && !ended.has(uid)) violated(`${keyOf(after)} is Ended, but no end is stored`);
        if (phase !== 'Reserved') return;
        const node = textAt(after, 'status', 'suitableNodeName') ?? '';
        const generation = reserved.get(uid)?.get(node);
        if (generation === undefined) violated(`${keyOf(after)} (${uid}) shows ${node}, which is not stored`);
        else if (generation > (numberAt(after, 'status', 'observedGeneration') ?? 0))
          violated(`${keyOf(after)} shows ${node}, which is stored for generation ${generation} only`);
      });
    },
  };
}
