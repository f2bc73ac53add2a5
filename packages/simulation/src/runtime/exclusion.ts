import type { Replica, Working } from './replica.ts';
import type { Violations } from './violations.ts';

const LATEST_TIMER_MS = 500;

/**
 * Checks mutual exclusion:
 * - A process never runs two reconciles of the same object at the same time.
 * - With leader election, two replicas never reconcile the same object at the same time.
 * - With sharding, two replicas never reconcile objects of the same namespace at the same time.
 *
 * A process that was paused during a reconcile continues the reconcile when it resumes, even if it has lost leadership.
 * This is not a violation, because the process could not learn of the loss. If the process then sends a write, this is
 * a violation, which the fence must prevent.
 */
export class Exclusion {
  readonly #violations: Violations;
  readonly #scope: 'key' | 'namespace';
  readonly #replicas: () => readonly Replica[];

  constructor(violations: Violations, scope: 'key' | 'namespace', replicas: () => readonly Replica[]) {
    this.#violations = violations;
    this.#scope = scope;
    this.#replicas = replicas;
  }

  begin(replica: Replica, key: string): Disposable {
    for (const working of replica.working)
      if (working.key === key)
        this.#violations.add(
          'one reconcile of an object at a time',
          `${replica.name} reconciles ${key} twice at the same time`,
        );
    // In two cases, a start is not a violation, because the process could not yet learn that it has lost leadership:
    // - The process was just resumed after a pause, and its overdue timers have not fired yet.
    // - The process is paused, but still completes the current turn of its event loop.
    const disturbed = replica.runningMs < LATEST_TIMER_MS || replica.simulated.process.state !== 'running';
    const working = { key, namespace: key.split('/', 1)[0] ?? '', disturbed };
    if (!disturbed) this.#compare(replica, working, 'starts to reconcile');
    replica.working.add(working);
    return { [Symbol.dispose]: () => void replica.working.delete(working) };
  }

  /**
   * Reports a violation if another replica reconciles the same object or namespace. Must be called whenever a replica
   * sends a write.
   */
  sends(replica: Replica, key: string): void {
    this.#compare(replica, { key, namespace: key.split('/', 1)[0] ?? '', disturbed: false }, 'writes');
  }

  #compare(replica: Replica, mine: Working, does: string): void {
    const scope = this.#scope;
    for (const other of this.#replicas()) {
      if (other === replica) continue;
      for (const theirs of other.working)
        if (theirs[scope] === mine[scope] && !theirs.disturbed)
          this.#violations.add(
            'one replica at a time',
            `${replica.name} ${does} ${mine.key} while ${other.name} reconciles ${theirs.key}`,
          );
    }
  }
}
