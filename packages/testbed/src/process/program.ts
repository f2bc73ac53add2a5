import { fileURLToPath } from 'node:url';

/** Returns the command line that runs a program of this repository from source. */
export function programOf(name: 'cloud' | 'operator', ...args: readonly string[]) {
  const main = fileURLToPath(new URL(`../../../${name}/src/main.ts`, import.meta.url));
  return { command: process.execPath, args: ['--disable-warning=ExperimentalWarning', main, ...args] };
}
