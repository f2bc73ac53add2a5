import { fileURLToPath } from 'node:url';

/** The command line of a program of this repository, as Node runs it from its source. */
export function programOf(name: 'cloud' | 'operator', ...args: readonly string[]) {
  const main = fileURLToPath(new URL(`../../../${name}/src/main.ts`, import.meta.url));
  return { command: process.execPath, args: ['--disable-warning=ExperimentalWarning', main, ...args] };
}
