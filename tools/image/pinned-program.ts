import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Go packages of the programs. The Go modules `tools/<name>` pin their versions and hashes. */
const PROGRAMS = {
  crane: 'github.com/google/go-containerregistry/cmd/crane',
  helm: 'helm.sh/helm/v3/cmd/helm',
} as const;

/** Output of a program. */
export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Builds and runs a program from its pinned sources. Needs only Go, because the jobs of a release that may write to the
 * registry must not install npm packages. Paths in the arguments must be absolute.
 * @throws if the program fails, with its output
 */
export function runPinned(program: keyof typeof PROGRAMS, ...args: readonly string[]): Output {
  const cwd = fileURLToPath(new URL(`../${program}`, import.meta.url));
  const { status, stdout, stderr, error } = spawnSync('go', ['run', PROGRAMS[program], ...args], {
    cwd,
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args[0] ?? ''} failed: ${stderr.trim()}`);
  return { stdout, stderr };
}
