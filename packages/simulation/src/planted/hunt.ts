import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Violation } from '../scenario/scenario.ts';
import type { Planted } from './planted.ts';

export interface Hunted {
  /** How many were run. */
  readonly seeds: number;
  /** The first that violates anything; undefined when none did. */
  readonly found?: { readonly seed: number; readonly violation: Violation };
}

const HUNTER = fileURLToPath(new URL('hunter.ts', import.meta.url));
const run = promisify(execFile);

/**
 * Runs seeds of a scenario until one violates something, in a process of its own, with a planted bug or, for comparison,
 * without any.
 * @param seeds in the order in which they are run: `17`, `1-3000`, `17,1-500`
 */
export async function hunt(planted: Planted | undefined, scenario: string, seeds: string): Promise<Hunted> {
  const args = [HUNTER, scenario, seeds, planted?.name ?? ''];
  const { stdout } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', ...args]);
  return JSON.parse(stdout);
}
