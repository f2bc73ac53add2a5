import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TestbedError } from '../errors.ts';
import { tryRun } from '../process/run.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { toolsFolder } from './cache.ts';
import type { Bundle } from './catalog.ts';
import { ProgressLine } from './progress.ts';

/**
 * Builds the programs of a bundle from its pinned Go module into `folder`. Throws if Go is missing or the build fails.
 */
export async function build(bundle: Bundle, folder: string, env: NodeJS.ProcessEnv): Promise<void> {
  const go = await tryRun('go', ['version'], { env });
  if (go.code !== 0) {
    throw new TestbedError(
      'ASSET_UNAVAILABLE',
      'Go is not installed: no `go` on the PATH (1.25 or later is required)',
    );
  }

  const [only] = bundle.programs.size === 1 ? bundle.programs.keys() : [];
  const output = only === undefined ? `${folder}/` : join(folder, only);
  const dir = await RunSupervisor.shared.folder('go-build');
  const log = join(dir, 'log');
  // The supervisor runs the compiler, so that no process of the compiler outlives a killed run.
  const compiler = await RunSupervisor.shared.start({
    command: 'go',
    args: [
      ...['build', '-v', '-trimpath', '-buildvcs=false', '-mod=readonly'],
      ...['-tags', bundle.tags ?? '', '-ldflags', bundle.ldflags, '-o', output],
      ...bundle.programs.values(),
    ],
    env: { ...withoutUndefined(env), CGO_ENABLED: '0', GOWORK: 'off', GOTMPDIR: dir },
    cwd: join(toolsFolder, bundle.name),
    log,
    killSignal: 'SIGTERM',
  });
  using line = new ProgressLine(`building ${bundle.name} ${bundle.version} from source`);
  const watch = setInterval(async () => {
    line.detail = progressOf(await readFile(log, 'utf8'));
  }, 1_000);
  const exit = await compiler.waitForExit();
  clearInterval(watch);
  const buildLog = await readFile(log, 'utf8');
  await rm(dir, { recursive: true, force: true });
  if (exit.code !== 0) {
    throw new TestbedError(
      'BUILD_FAILED',
      `\`go build\` in tools/${bundle.name} failed: ${errorIn(buildLog)}`,
    );
  }
}

/** Summarises the output of `go build -v`: the names of compiled packages and of downloaded modules. */
function progressOf(log: string): string {
  const lines = log.trimEnd().split('\n');
  const compiled = lines.filter((line) => line !== '' && !line.startsWith('go: '));
  const last = compiled.at(-1);
  if (last !== undefined) return `${compiled.length} packages compiled, at ${last}`;
  return log === '' ? '' : 'downloading modules';
}

/** Returns the last lines that are error messages. Lines without a space are package names. */
function errorIn(log: string): string {
  const lines = log.trimEnd().split('\n');
  return lines
    .filter((line) => line.includes(' ') && !line.startsWith('go: downloading'))
    .slice(-8)
    .join('\n');
}

function withoutUndefined(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}
