/** Why a VirtualMachine is not Ready. */
export interface Problem {
  /** Failed only if a user must change something. */
  readonly phase: 'Provisioning' | 'Failed';
  readonly reason: string;
  /** What is wrong, with which object, and what to do. The same text on every retry. */
  readonly message: string;
}
