import { setTimeout as sleep } from 'node:timers/promises';

const RETRY_MS = 1_000;

/**
 * Retries until `attempt` succeeds or is no longer needed. Tests kill API servers, delete namespaces and create invalid
 * objects. A stand-in must survive this, as the real component does.
 */
export async function retry(attempt: () => Promise<void>, needed: () => boolean): Promise<void> {
  while (needed()) {
    try {
      await attempt();
      return;
    } catch {
      await sleep(RETRY_MS);
    }
  }
}
