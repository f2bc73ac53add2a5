import { setTimeout as sleep } from 'node:timers/promises';

const AGAIN_MS = 1_000;

/**
 * Tries until it succeeds or nobody needs it any more. Tests kill API servers, delete namespaces and write nonsense; a
 * stand-in goes on through all of it, as what it plays would.
 */
export async function persist(attempt: () => Promise<void>, needed: () => boolean): Promise<void> {
  while (needed()) {
    try {
      await attempt();
      return;
    } catch {
      await sleep(AGAIN_MS);
    }
  }
}
