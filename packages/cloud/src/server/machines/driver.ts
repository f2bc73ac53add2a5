/** The part of a server that its driver needs. */
export interface Machine {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  /** Time of the delete request in ms since 1970; undefined if the server is not being deleted. */
  readonly deletingSince: number | undefined;
}

export interface Observation {
  readonly state: 'building' | 'running' | 'failed';
  /** Why the machine failed. */
  readonly message?: string;
  /** CPU utilization as an integer percentage, 0 to 100. */
  readonly cpuUtilization: number;
}

/**
 * Runs the machines of servers.
 *
 * Assumptions: `start` and `stop` of one machine never run concurrently. If a crash interrupts a call, the call may be
 * made again. It must then continue the interrupted operation and never create a second machine.
 */
export interface Driver {
  readonly name: string;
  /** Resolves once the machine is booting; throws if it can never start. */
  start(machine: Machine, signal: AbortSignal): Promise<void>;
  /** Resolves once nothing of the machine is left, even if the machine never existed. */
  stop(machine: Machine, signal: AbortSignal): Promise<void>;
  /**
   * Returns the last known state of a started machine. Must be cheap: it is called often and for thousands of machines.
   */
  observe(machine: Machine): Observation;
  /** Stops managing the machines, which keep running. */
  close(): Promise<void>;
}
