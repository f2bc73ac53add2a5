import type { ApiServer } from '../apiserver/api-server.ts';
import type { Change } from '../apiserver/store.ts';
import type { Simulation } from '../world/simulation.ts';
import { ENDED_TERM, isOfAnEndedTerm } from '../world/work.ts';
import type { Findings } from './findings.ts';
import { FINALIZER, Widget } from './kinds.ts';
import type { Life } from './life.ts';
import { hasFinalizer } from './read.ts';

/** Below the time that a leader has to end in after it lost the lead, also with timers that are late. */
const LONGEST_CALL_MS = 2_500;

/**
 * What widgets stand for, outside the cluster: made by a call that takes its time, and does not end early. Nothing is
 * made before the finalizer is on the object, and the finalizer goes only when what was made is gone.
 */
export class Outside {
  readonly #simulation: Simulation;
  readonly #findings: Findings;
  readonly #onCall: (life: Life, what: string) => void;
  /** Of objects that have, or once had, our finalizer. */
  readonly #guarded = new Set<string>();
  readonly #released = new Set<string>();
  readonly #made = new Set<string>();

  constructor(
    simulation: Simulation,
    server: ApiServer,
    findings: Findings,
    onCall: (life: Life, what: string) => void,
  ) {
    this.#onCall = onCall;
    this.#simulation = simulation;
    this.#findings = findings;
    server.listen((change) => {
      if (change.resource.kind.plural === Widget.plural) this.#see(change);
    });
  }

  async make(life: Life, { metadata: { uid = '', name } }: Widget): Promise<void> {
    if (!this.#guarded.has(uid))
      this.#findings.add(
        'finalizer is added before external calls',
        `${life.name} makes ${name} before its finalizer is stored`,
      );
    await this.#call(life, `make ${name}`);
    this.#made.add(uid);
  }

  /** @throws now and then, while things go wrong */
  async release(life: Life, { metadata: { uid = '', name } }: Widget): Promise<'done' | 'not yet'> {
    const { choices, network, counts } = this.#simulation;
    await this.#call(life, `release ${name}`);
    if (network.faulty && choices.oneIn(3)) {
      counts.add('a finalize failed');
      throw new Error('the outside is busy');
    }
    if (network.faulty && choices.oneIn(4)) return 'not yet';
    this.#released.add(uid);
    this.#made.delete(uid);
    return 'done';
  }

  /** For what has no object. */
  look(life: Life): Promise<void> {
    return this.#call(life, 'look');
  }

  /** The last step of an operation that goes on after its reconcile has ended. */
  late(life: Life, what: string): void {
    this.#simulation.counts.add('an operation ended after its reconcile');
    this.#onCall(life, what);
    if (isOfAnEndedTerm()) this.#findings.add(ENDED_TERM, `${life.name} ${what}`);
  }

  isMade(uid: string): boolean {
    return this.#made.has(uid);
  }

  #call(life: Life, what: string): Promise<void> {
    this.#onCall(life, what);
    const { choices } = this.#simulation;
    const ms = choices.oneIn(4) ? choices.pick(LONGEST_CALL_MS) : choices.pick(60);
    return new Promise((resolve) => void life.simulated.after(ms, resolve));
  }

  #see({ key, before, after }: Change): void {
    const object = after?.object ?? before?.object;
    const { uid = '' } = object?.metadata ?? {};
    if (hasFinalizer(after?.object, FINALIZER)) this.#guarded.add(uid);
    else if (hasFinalizer(before?.object, FINALIZER) && !this.#released.has(uid))
      this.#findings.add('finalizer is removed after finalize', `that of ${key} is gone before finalize has succeeded`);
  }
}
