import { fileURLToPath } from 'node:url';

/** Programs of this repository, by the path of their entry point in `packages`. */
const PROGRAMS = {
  cloud: 'cloud/src/main.ts',
  operator: 'operator/src/main.ts',
  mirror: 'operator/src/ssvirt-vm-controller.ts',
} as const;

/** Returns the command line that runs a program of this repository from source. */
export function programOf(name: keyof typeof PROGRAMS, ...args: readonly string[]) {
  const main = fileURLToPath(new URL(`../../../${PROGRAMS[name]}`, import.meta.url));
  return { command: process.execPath, args: ['--disable-warning=ExperimentalWarning', main, ...args] };
}
