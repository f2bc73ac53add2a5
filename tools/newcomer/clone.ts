import { execFileSync } from 'node:child_process';
import { delimiter } from 'node:path';

/** Clones the current commit of a repository into a new folder, without files that git does not track. */
export function clone(repository: string, folder: string): void {
  execFileSync('git', ['clone', '--quiet', '--depth=1', `file://${repository}`, folder], {
    stdio: 'inherit',
  });
}

/**
 * Returns the environment of a user's terminal: without the variables and the `PATH` that `make` and npm set for this
 * process.
 */
export function terminalEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const {
    MAKEFLAGS,
    MAKELEVEL,
    MFLAGS,
    NODE_OPTIONS,
    NODE_COMPILE_CACHE,
    VMWRIGHT_UP_DIR,
    KUBECONFIG,
    ...rest
  } = env;
  const folders = (rest.PATH ?? '').split(delimiter).filter((each) => !each.includes('node_modules'));
  return { ...rest, PATH: folders.join(delimiter) };
}
