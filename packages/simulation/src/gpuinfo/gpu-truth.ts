import type { Hosts } from './hosts.ts';
import type { JobHistory } from './jobs.ts';
import type { Knowledge } from './knowledge.ts';
import type { ReservationHistory } from './reservations.ts';

/** Ground truth of the scenario `gpuinfo`, in addition to `Truth`, which all scenarios have. */
export interface GpuTruth {
  readonly reservations: ReservationHistory;
  readonly jobs: JobHistory;
  readonly knowledge: Knowledge;
  readonly hosts: Hosts;
  /** Returns the time that a correct clock shows, in milliseconds since 1970. */
  readonly now: () => number;
}
