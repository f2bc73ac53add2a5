import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TestbedError } from '../errors.ts';
import { Keeper } from '../process/keeper.ts';
import { tryRun } from '../process/run.ts';
import { toolsFolder } from './cache.ts';
import type { Bundle } from './catalog.ts';
import { ProgressLine } from './progress.ts';

/** Builds the programs of a bundle from its pinned Go module into `folder`. */
export async function build(bundle: Bundle, folder: string, env: NodeJS.ProcessEnv): Promise<void> {
  const go = await tryRun('go', ['version'], { env });
  if (go.code !== 0) {
    throw new TestbedError(
      'ASSET_UNAVAILABLE',
      'Go is not installed: there is no `go` on the PATH (any version from 1.25 on will do)',
    );
  }

  const [only] = bundle.programs.size === 1 ? bundle.programs.keys() : [];
  const output = only === undefined ? `${folder}/` : join(folder, only);
  const dir = await Keeper.shared.folder('go-build');
  const log = join(dir, 'log');
  // Kept, like the parts: a compiler of many processes must not go on after the run that wanted it was killed.
  const compiler = await Keeper.shared.start({
    command: 'go',
    args: [
      ...['build', '-v', '-trimpath', '-buildvcs=false', '-mod=readonly'],
      ...['-ldflags', bundle.ldflags, '-o', output],
      ...bundle.programs.values(),
    ],
    env: { ...defined(env), CGO_ENABLED: '0', GOWORK: 'off', GOTMPDIR: dir },
    cwd: join(toolsFolder, bundle.name),
    log,
    lastSignal: 'SIGTERM',
  });
  using line = new ProgressLine(`building ${bundle.name} ${bundle.version} from source`);
  const watch = setInterval(async () => {
    line.detail = stateOf(await readFile(log, 'utf8'));
  }, 1_000);
  const exit = await compiler.waitForExit();
  clearInterval(watch);
  const said = await readFile(log, 'utf8');
  await rm(dir, { recursive: true, force: true });
  if (exit.code !== 0) {
    throw new TestbedError('BUILD_FAILED', `\`go build\` in tools/${bundle.name} failed: ${complaint(said)}`);
  }
}

/** `go build -v` names each package as it compiles it, and each module as it downloads it. */
function stateOf(log: string): string {
  const lines = log.trimEnd().split('\n');
  const compiled = lines.filter((line) => line !== '' && !line.startsWith('go: '));
  const last = compiled.at(-1);
  if (last !== undefined) return `${compiled.length} packages compiled, at ${last}`;
  return log === '' ? '' : 'downloading modules';
}

function complaint(log: string): string {
  const lines = log.trimEnd().split('\n');
  return lines
    .filter((line) => line.includes(' ') && !line.startsWith('go: downloading'))
    .slice(-8)
    .join('\n');
}

function defined(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}
