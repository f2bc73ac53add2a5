import type { ApiServer } from '../apiserver/api-server.ts';
import type { Change } from '../apiserver/store.ts';
import type { Simulation } from '../world/simulation.ts';
import { ENDED_TERM, isInEndedTerm } from '../world/work-tracker.ts';
import { hasFinalizer } from './fields.ts';
import { FINALIZER, Widget } from './kinds.ts';
import type { Replica } from './replica.ts';
import type { Violations } from './violations.ts';

/**
 * Maximum duration of a call. After a leader has lost the lease, it must stop before a deadline, even if timers fire
 * late. Calls cannot be cancelled, so each call must be short enough to end before that deadline.
 */
const LONGEST_CALL_MS = 2_500;

/**
 * Model of the external system that widgets manage. Calls take time and cannot be cancelled. Checks that
 * nothing is created before the finalizer is stored, and that the finalizer is removed only after the
 * resource is gone.
 */
export class ExternalSystem {
  readonly #simulation: Simulation;
  readonly #violations: Violations;
  readonly #onCall: (replica: Replica, what: string) => void;
  /** UIDs of objects that have or had the finalizer of the simulated program. */
  readonly #guarded = new Set<string>();
  readonly #released = new Set<string>();
  readonly #made = new Set<string>();

  constructor(
    simulation: Simulation,
    server: ApiServer,
    violations: Violations,
    onCall: (replica: Replica, what: string) => void,
  ) {
    this.#onCall = onCall;
    this.#simulation = simulation;
    this.#violations = violations;
    server.listen((change) => {
      if (change.resource.kind.plural === Widget.plural) this.#track(change);
    });
  }

  async make(replica: Replica, { metadata: { uid = '', name } }: Widget): Promise<void> {
    if (!this.#guarded.has(uid))
      this.#violations.add(
        'finalizer is added before external calls',
        `${replica.name} creates ${name} before its finalizer is stored`,
      );
    await this.#call(replica, `make ${name}`);
    this.#made.add(uid);
  }

  /** Releases the external resource. @throws randomly while faults are active */
  async release(replica: Replica, { metadata: { uid = '', name } }: Widget): Promise<'done' | 'not yet'> {
    const { choices, network, counts } = this.#simulation;
    await this.#call(replica, `release ${name}`);
    if (network.faulty && choices.oneIn(3)) {
      counts.add('a finalize failed');
      throw new Error('the external system is busy');
    }
    if (network.faulty && choices.oneIn(4)) return 'not yet';
    this.#released.add(uid);
    this.#made.delete(uid);
    return 'done';
  }

  /** Simulates a list of the external resources. The result is not modelled. */
  list(replica: Replica): Promise<void> {
    return this.#call(replica, 'list');
  }

  /**
   * Simulates the last call of an operation that continues after its reconcile has returned. Reports a
   * violation if the leadership term in which the operation was started has ended.
   */
  late(replica: Replica, what: string): void {
    this.#simulation.counts.add('an operation ended after its reconcile');
    this.#onCall(replica, what);
    if (isInEndedTerm()) this.#violations.add(ENDED_TERM, `${replica.name} ${what}`);
  }

  isMade(uid: string): boolean {
    return this.#made.has(uid);
  }

  #call(replica: Replica, what: string): Promise<void> {
    this.#onCall(replica, what);
    const { choices } = this.#simulation;
    const ms = choices.oneIn(4) ? choices.pick(LONGEST_CALL_MS) : choices.pick(60);
    return new Promise((resolve) => void replica.simulated.after(ms, resolve));
  }

  #track({ key, before, after }: Change): void {
    const object = after?.object ?? before?.object;
    const { uid = '' } = object?.metadata ?? {};
    if (hasFinalizer(after?.object, FINALIZER)) this.#guarded.add(uid);
    else if (hasFinalizer(before?.object, FINALIZER) && !this.#released.has(uid))
      this.#violations.add(
        'finalizer is removed after finalize',
        `the finalizer of ${key} is removed before finalize succeeded`,
      );
  }
}
