/**
 * `make newcomer`: does what a new user does, and fails if something differs from the pages. Clones the repository into an empty folder, runs
 * the quick start of README.md and docs/tour.md word for word, compares each output with the page, presses Ctrl-C and checks that nothing is
 * left. `make test`, the other command of a newcomer, is what continuous integration runs on its own fresh clone.
 *
 * Uses the caches of npm and of the testbed's programs. PORTS sets other ports than those of `make up`.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type ConsoleCommand, consoleCommands, shapeOf } from '@vmwright/testbed';
import { clone, terminalEnvironment } from './clone.ts';
import { Foreground } from './foreground.ts';
import { isRepeatable, quickStart, UP } from './quick-start.ts';
import { Session } from './session.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Pages that continue the quick start. */
const PAGES = ['docs/tour.md'];

/** The first start builds the testbed's programs if they are not cached. */
const UP_MS = 30 * 60_000;
const COMMAND_MS = 150_000;
/** How long a user repeats a command that shows a state which is not reached yet. */
const REPEAT_MS = 60_000;

const startedAt = performance.now();
const print = (line: string) =>
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(0).padStart(4)} s  ${line}`);

/** Runs a command of a page and compares its output with the page. */
async function runCommand(session: Session, { line, output }: ConsoleCommand, page: string): Promise<void> {
  print(`$ ${line}`);
  const expected = output.map(shapeOf);
  const deadline = performance.now() + (isRepeatable(line) ? REPEAT_MS : 0);
  for (;;) {
    const { code, lines } = await session.run(line, COMMAND_MS);
    const isAsShown = expected.length === 0 ? code === 0 : isEqual(lines.map(shapeOf), expected);
    if (isAsShown) return;
    if (performance.now() > deadline)
      throw new Error(
        `${page}: \`${line}\` (exit code ${code}) printed\n${lines.join('\n')}\n\nbut the page shows\n${output.join('\n')}`,
      );
    await sleep(1_000);
  }
}

function isEqual(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}

const folder = mkdtempSync(join(tmpdir(), 'vmwright-newcomer-'));
const cwd = join(folder, 'vmwright');
const options = { cwd, env: terminalEnvironment(process.env) };
try {
  print('git clone');
  clone(ROOT, cwd);
  const read = (page: string) => readFileSync(join(cwd, page), 'utf8');
  const steps = [
    ...quickStart(read('README.md')).map((command) => ({ command, page: 'README.md' })),
    ...PAGES.flatMap((page) => consoleCommands(read(page)).map((command) => ({ command, page }))),
  ];
  print(`$ ${UP}`);
  await using up = new Foreground(UP, options);
  try {
    await up.created(join(cwd, '.vmwright/ready'), UP_MS);
    using terminal = new Session(options);
    for (const { command, page } of steps) if (command.line !== UP) await runCommand(terminal, command, page);
  } catch (error) {
    console.error(up.output.split('\n').slice(-40).join('\n'));
    throw error;
  }
  print('Ctrl-C');
  await up.interrupt();
  if (existsSync(join(cwd, '.vmwright'))) throw new Error('`make up` has left .vmwright behind');
  print(`all ${steps.length} commands print what the pages show`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
