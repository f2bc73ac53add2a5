import { type FaultRates, REQUEST_FAULTS, USUAL_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { VimFault } from './fault.ts';
import { Vcenter } from './vcenter.ts';

export const VCENTER = 'https://vcenter.simulated';

export const VCENTER_FAULTS: FaultRates = {
  ...USUAL_FAULTS,
  request: 24,
  requestFaults: [...REQUEST_FAULTS, 'late', 'late', 'answer lost', 'reset'],
  line: 24,
};

/** Maximum delay with which a collector reports a change. */
const MAX_LAG_MS = 4_000;
/** One task in 14 fails. */
const FAILING = 14;
/** Page size of responses. It is small, so that responses have several pages although a run has few objects. */
const MAX_PAGE_SIZE = 3;
/**
 * Number of finished tasks that `recentTask` keeps. It is far below vCenter's 200, so that some tasks leave the list
 * before a client has observed their end.
 */
const RECENT_TASKS = 3;

const FAULTS = [
  new VimFault('NoDiskSpace', '<file></file><datastore>LocalDS_0</datastore>'),
  new VimFault('InsufficientResourcesFault'),
  new VimFault('HostCommunication'),
] as const;

/** Lets a scenario control task durations. */
export interface Pace {
  /** Duration of the next clone; undefined for a random one. */
  nextCloneMs: number | undefined;
}

/** Options of a second vCenter. */
export interface OtherVcenter {
  readonly instanceUuid?: string;
  /** Called for each change that a client requests. */
  readonly onChange?: (what: string) => void;
}

/** Creates a vCenter for a simulation. The caller registers it with `Traffic.serve`. */
export function simulatedVcenter(
  simulation: Simulation,
  user: { readonly username: string; readonly password: string },
  pace: Pace = { nextCloneMs: undefined },
  { instanceUuid, onChange }: OtherVcenter = {},
): Vcenter {
  const { schedule, choices, counts, network } = simulation;
  return new Vcenter({
    ...user,
    ...(instanceUuid !== undefined && { instanceUuid }),
    environment: {
      after: (ms, act) => schedule.after(ms, act),
      uuid: () => simulation.uuid(),
      taskMs: (what) => {
        if (what !== 'CloneVM') return choices.delay(300, 6_000);
        const { nextCloneMs = choices.delay(2_000, 30_000) } = pace;
        pace.nextCloneMs = undefined;
        return nextCloneMs;
      },
      taskFault: (what) => {
        if (!network.faulty || !choices.oneIn(FAILING)) return undefined;
        counts.add('a task failed');
        return { fault: choices.one(FAULTS), isLate: what === 'CloneVM' && choices.oneIn(3) };
      },
      shutdownMs: () => choices.one([500, 3_000, Number.POSITIVE_INFINITY, undefined] as const),
      lagMs: () => {
        const lag = network.faulty && choices.oneIn(6) ? choices.pick(MAX_LAG_MS) : 0;
        if (lag > 0) counts.add('an update was late');
        return lag;
      },
      forgetsVersions: () => {
        const isForgotten = network.faulty && choices.oneIn(3);
        counts.add(isForgotten ? 'a version was forgotten' : 'an answer was repeated');
        return isForgotten;
      },
      recentTasks: RECENT_TASKS,
      maxPageSize: MAX_PAGE_SIZE,
      note: (what) => {
        simulation.note(instanceUuid === undefined ? 'vcenter' : 'another vcenter', what);
        onChange?.(what);
      },
      unmodelled: (message) => schedule.fail(new Error(message)),
    },
  });
}
