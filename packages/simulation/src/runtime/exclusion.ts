import type { Findings } from './findings.ts';
import type { Life, Working } from './life.ts';

const LATEST_TIMER_MS = 500;

/**
 * Nobody works twice at a time on the same thing: in one process, on one object; among replicas, on whatever is one's at a
 * time (an object under a leader, a namespace under sharding).
 *
 * A process that was stopped amid a piece of work finds it unended when it goes on. That is no violation, since nobody
 * could have told it; what it sends then is, and the fence must refuse it.
 */
export class Exclusion {
  readonly #findings: Findings;
  readonly #scope: 'key' | 'namespace';
  readonly #lives: () => readonly Life[];

  constructor(findings: Findings, scope: 'key' | 'namespace', lives: () => readonly Life[]) {
    this.#findings = findings;
    this.#scope = scope;
    this.#lives = lives;
  }

  begin(life: Life, key: string): Disposable {
    for (const working of life.working)
      if (working.key === key)
        this.#findings.add('one reconcile of an object at a time', `${life.name} works twice on ${key}`);
    // Just gone on after a stop, it may begin before its timers tell it that its time was up long ago; and what it does in
    // the turn in which it is stopped happens all the same.
    const disturbed = life.runningMs < LATEST_TIMER_MS || life.simulated.process.state !== 'running';
    const working = { key, namespace: key.split('/', 1)[0] ?? '', disturbed };
    if (!disturbed) this.#compare(life, working, 'begins to work on');
    life.working.add(working);
    return { [Symbol.dispose]: () => void life.working.delete(working) };
  }

  /** To be called when a write is sent on behalf of an object. */
  sends(life: Life, key: string): void {
    this.#compare(life, { key, namespace: key.split('/', 1)[0] ?? '', disturbed: false }, 'writes about');
  }

  #compare(life: Life, mine: Working, does: string): void {
    const scope = this.#scope;
    for (const other of this.#lives()) {
      if (other === life) continue;
      for (const theirs of other.working)
        if (theirs[scope] === mine[scope] && !theirs.disturbed)
          this.#findings.add(
            'one replica at a time',
            `${life.name} ${does} ${mine.key} while ${other.name} works on ${theirs.key}`,
          );
    }
  }
}
