import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Violation } from '../scenario/scenario.ts';
import type { Mutant } from './mutant.ts';

export interface SearchResult {
  /** Number of seeds that were run. */
  readonly seeds: number;
  /** First seed that violates an invariant; undefined if none does. */
  readonly found?: { readonly seed: number; readonly violation: Violation };
}

const PROGRAM = fileURLToPath(new URL('search-process.ts', import.meta.url));
const run = promisify(execFile);

/**
 * Runs seeds of a scenario in a separate process until one violates an invariant.
 * @param mutant mutant to install; undefined runs the unchanged code, for comparison
 * @param seeds numbers and ranges of seeds, in the order in which they are run: `17`, `1-3000`, `17,1-500`
 */
export async function search(
  mutant: Mutant | undefined,
  scenario: string,
  seeds: string,
): Promise<SearchResult> {
  const args = [PROGRAM, scenario, seeds, mutant?.name ?? ''];
  const { stdout } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', ...args]);
  return JSON.parse(stdout);
}
