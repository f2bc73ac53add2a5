import type { Trouble } from './trouble.ts';

/**
 * Remembers which causes were announced for each group, so that each leads to one event and one log line, however often
 * it is retried. A cause that went away and comes back is announced again.
 */
export class Announcements {
  readonly #known = new Map<string, ReadonlySet<string>>();

  /** The causes among these that were not announced yet. Something that has to end first is no cause. */
  news(group: string, troubles: readonly Trouble[]): readonly Trouble[] {
    const causes = new Map(
      troubles
        .filter(({ isPassing }) => !isPassing)
        .map((trouble) => [`${trouble.reason}\n${trouble.message}`, trouble]),
    );
    const before = this.#known.get(group);
    if (causes.size === 0) this.#known.delete(group);
    else this.#known.set(group, new Set(causes.keys()));
    return [...causes].flatMap(([cause, trouble]) => (before?.has(cause) ? [] : trouble));
  }

  /** Forgets a group, or all. */
  clear(group?: string): void {
    if (group === undefined) this.#known.clear();
    else this.#known.delete(group);
  }
}
