/** A server as its driver knows it. */
export interface Machine {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  /** When its deletion was asked for; undefined while it is wanted. */
  readonly deletingSince: number | undefined;
}

export interface Observation {
  readonly state: 'building' | 'running' | 'failed';
  /** Why it has failed. */
  readonly message?: string;
  /** Whole percent, 0 to 100. */
  readonly cpuUtilization: number;
}

/**
 * Makes machines of servers.
 *
 * Assumptions: `start` and `stop` of one machine are never under way at the same time, but either may be called again
 * after a restart in the midst of it: both must do what is left to do, and never make a second machine.
 */
export interface Driver {
  readonly name: string;
  /** Resolves once the machine is on its way up; throws when it can never be. */
  start(machine: Machine, signal: AbortSignal): Promise<void>;
  /** Resolves once nothing of the machine is left. One that never was is gone. */
  stop(machine: Machine, signal: AbortSignal): Promise<void>;
  /** What is known of a machine that was started. It is asked often, and for thousands: it must be cheap. */
  observe(machine: Machine): Observation;
  /** Lets go of the machines, which go on without us. */
  close(): Promise<void>;
}
