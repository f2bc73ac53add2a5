import { GPUInfo } from '@vmwright/operator';
import type { Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import { conditionOf, onChange, phaseIn, textAt } from '../scenario/stored-objects.ts';
import type { GpuTruth } from './gpu-truth.ts';
import { isLedgerWrite, isLive } from './reservations.ts';

/** Critical moments. When many seeds are run, each of them must occur in at least one seed. */
export const CRITICAL_MOMENTS = [
  'a reservation was stored during the faults',
  'a reservation moved to another node',
  'a reservation was lost',
  'a reservation ended with its job',
  'a reservation ended with its time',
  'a reservation was made again after a change',
  'a reservation of a deleted object was dropped',
  'a running job kept a node that is no longer suitable',
  'a request waited',
  'leadership moved while a ledger write was in transit',
  'leadership moved between a ledger write and its status',
  'a ledger write was rejected',
  'a write arrived after another replica became leader',
] as const;

type Add = (what: (typeof CRITICAL_MOMENTS)[number]) => void;

/** Counts the moments in which a bug is most likely to violate an invariant. */
export function countCriticalMoments(truth: Truth, gpuTruth: GpuTruth): void {
  const add: Add = (what) => truth.simulation.counts.add(what);
  countLeaders(truth, gpuTruth, add);
  countReservations(truth, gpuTruth, add);
  onChange(truth.server, GPUInfo, (_, after) => {
    if (after === undefined) return;
    if (phaseIn(after) === 'Pending') add('a request waited');
    if (conditionOf(after, 'Degraded') !== undefined)
      add('a running job kept a node that is no longer suitable');
  });
}

function countLeaders({ server, traffic }: Truth, { reservations }: GpuTruth, add: Add): void {
  const holder = new Holder({ server }, LEASE, (before) => {
    if (before === '') return;
    if (traffic.inFlight().some((sent) => isLedgerWrite(sent) && before.startsWith(`${sent.sender}_`)))
      add('leadership moved while a ledger write was in transit');
    for (const info of server.objects(GPUInfo)) {
      const reservation = reservations.current.get(info.metadata.uid ?? '');
      if (isLive(reservation) && textAt(info, 'status', 'suitableNodeName') !== reservation.node)
        add('leadership moved between a ledger write and its status');
    }
  });
  let version = 0;
  traffic.onArrival((sent) => {
    if (isLedgerWrite(sent)) version = server.resourceVersion;
    if (!sent.path.includes('/leases') && !holder.is(sent.sender))
      add('a write arrived after another replica became leader');
  });
  traffic.onEnd((sent) => {
    if (isLedgerWrite(sent) && sent.arrivedAt !== undefined && version === server.resourceVersion)
      add('a ledger write was rejected');
  });
}

function countReservations({ simulation }: Truth, { reservations }: GpuTruth, add: Add): void {
  reservations.listen((before, after) => {
    if (simulation.network.faulty) add('a reservation was stored during the faults');
    for (const [uid, is] of after) {
      const was = before.get(uid);
      if (isLive(was) && isLive(is) && was.node !== is.node) add('a reservation moved to another node');
      if (isLive(was) && is.ended === 'JobEnded') add('a reservation ended with its job');
      if (isLive(was) && is.ended === 'TimePassed') add('a reservation ended with its time');
      if (was !== undefined && !isLive(was) && isLive(is)) add('a reservation was made again after a change');
    }
    for (const [uid, was] of before)
      if (!after.has(uid))
        add(isLive(was) ? 'a reservation was lost' : 'a reservation of a deleted object was dropped');
  });
}
