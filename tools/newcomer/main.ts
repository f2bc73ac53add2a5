/**
 * `make newcomer`: follows the pages for new users in a fresh clone of the repository. Runs the commands of the quick
 * start in README.md and of docs/tour.md word for word, and fails if an output differs from the page. Then presses
 * Ctrl-C and checks that no file or process is left. Leaves out `make test`, which continuous integration runs on its
 * own fresh clone.
 *
 * Uses the caches of npm and of the testbed's programs. Uses free ports, so that it can run next to another `make up`.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { consoleCommands, freePortRange } from '@vmwright/testbed';
import { clone, terminalEnvironment } from './clone.ts';
import { Foreground } from './foreground.ts';
import { quickStart, UP } from './quick-start.ts';
import { Session } from './session.ts';
import { runStep } from './step.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Pages that continue the quick start. */
const PAGES = ['docs/tour.md'];

/** Maximum time until `make up` is ready. The first start builds the testbed's programs if they are not cached. */
const UP_MS = 30 * 60_000;
const LIMITS = { timeoutMs: 150_000, repeatMs: 60_000 };

const startedAt = performance.now();
const print = (line: string) =>
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(0).padStart(4)} s  ${line}`);

const folder = mkdtempSync(join(tmpdir(), 'vmwright-newcomer-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const cwd = join(folder, 'vmwright');
const PORTS = process.env.PORTS ?? String(await freePortRange(9));
const options = { cwd, env: { ...terminalEnvironment(process.env), PORTS } };
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
    for (const { command, page } of steps) {
      if (command.line === UP) continue;
      print(`${page}: ${command.line}`);
      await runStep(terminal, command, LIMITS);
    }
  } catch (error) {
    console.error(up.output.split('\n').slice(-40).join('\n'));
    throw error;
  }
  print('Ctrl-C');
  await up.interrupt();
  if (existsSync(join(cwd, '.vmwright'))) throw new Error('`make up` has left .vmwright behind');
  print(`all ${steps.length} commands print the output that the pages show`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
