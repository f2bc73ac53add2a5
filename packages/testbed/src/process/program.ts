import { fileURLToPath } from 'node:url';

/** Entry points of the programs of this repository, relative to `packages`. */
const PROGRAMS = {
  cloud: 'cloud/src/main.ts',
  operator: 'operator/src/main.ts',
  mirror: 'operator/src/ssvirt-vm-controller.ts',
} as const;

/** Returns the command line that runs a program of this repository from source, as fields of `PartOptions`. */
export function programOf(name: keyof typeof PROGRAMS, ...args: readonly string[]) {
  const main = fileURLToPath(new URL(`../../../${PROGRAMS[name]}`, import.meta.url));
  const flags = ['--disable-warning=ExperimentalWarning'];
  return { command: process.execPath, args: [...flags, main, ...args], isOurs: true };
}
