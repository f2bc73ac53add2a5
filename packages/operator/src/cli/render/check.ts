import type { CheckResult } from '../checks/result.ts';
import type { Paint } from '../output.ts';

const MARKS = { passed: ['green', '✓'], failed: ['red', '✗'], skipped: ['yellow', '-'] } as const;

/** Returns one line per check. The remedy follows the line of a failed check. */
export function renderChecks(results: readonly CheckResult[], paint: Paint): string {
  const lines = results.flatMap(({ name, state, detail, remedy }) => {
    const [style, mark] = MARKS[state];
    const line = `${paint(style, mark)} ${name}: ${detail}`;
    return remedy === undefined ? [line] : [line, `    ${remedy}`];
  });
  const count = results.filter(({ state }) => state === 'failed').length;
  const summary = count === 0 ? 'All checks passed.' : `${count} of ${results.length} checks failed.`;
  return [...lines, summary].join('\n');
}
