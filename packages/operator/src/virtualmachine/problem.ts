import type { Condition } from '@vmwright/runtime';
import type { VirtualMachineReason } from './conditions.ts';

/** Why a VirtualMachine is not Ready. */
export interface Problem {
  /** Failed only if a user must change something. */
  readonly phase: 'Provisioning' | 'Failed';
  readonly reason: VirtualMachineReason;
  /** What is wrong, with which object, and what to do. The same text on every retry. */
  readonly message: string;
}

/** A condition that a plan sets, with a reason from the table `CONDITIONS`. */
export type PlannedCondition = Pick<Condition, 'status' | 'message'> & {
  readonly reason: VirtualMachineReason;
};
