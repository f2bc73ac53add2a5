import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type ConsoleCommand, shapeOf } from '@vmwright/testbed';
import { isRepeatable } from './quick-start.ts';
import type { Session } from './session.ts';

export interface StepOptions {
  /** Time after which a command counts as hanging. */
  readonly timeoutMs: number;
  /** Maximum time for which a command is repeated until its output matches the page. */
  readonly repeatMs: number;
}

/**
 * Runs a command of a page and compares its output with the page. If the page shows no output for the command, checks
 * only that the command succeeds.
 * @throws Error with both outputs if the check fails
 */
export async function runStep(
  session: Session,
  { line, output }: ConsoleCommand,
  { timeoutMs, repeatMs }: StepOptions,
): Promise<void> {
  const expected = output.map(shapeOf);
  const deadline = performance.now() + (isRepeatable(line) ? repeatMs : 0);
  for (;;) {
    const { code, lines } = await session.run(line, timeoutMs);
    const isAsShown = output.length === 0 ? code === 0 : isDeepStrictEqual(lines.map(shapeOf), expected);
    if (isAsShown) return;
    if (performance.now() > deadline)
      throw new Error(
        `\`${line}\` (exit code ${code}) printed\n${lines.join('\n')}\n\nbut the page shows\n${output.join('\n')}`,
      );
    await sleep(Math.min(1_000, repeatMs));
  }
}
