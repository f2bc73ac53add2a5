/**
 * Lists the test files that start no other process, because neither they nor their helpers use the testbed or
 * `node:child_process`. Leaves out the simulation, which has its own targets (`make simulate`, `make mutants`).
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const IMPORT = /(?:from|import) '([^']+)'/g;
const STARTS_PROCESSES = /^(@vmwright\/testbed(\/.*)?|node:child_process)$/;

export function unitFiles(): readonly string[] {
  return globSync('packages/{core,runtime,vsphere,cloud,operator}/src/**/*.test.ts').filter(
    (file) => !startsProcesses(file, new Set()),
  );
}

/**
 * Returns whether a test imports a module that starts processes. Follows relative imports of tests and their helpers in
 * `test/`. Does not follow imports of sources, because importing a source starts no process.
 */
function startsProcesses(file: string, visited: Set<string>): boolean {
  if (visited.has(file) || !existsSync(file)) return false;
  visited.add(file);
  for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
    if (STARTS_PROCESSES.test(specifier)) return true;
    const target = join(dirname(file), specifier);
    const isHelper = specifier.startsWith('.') && /\/test\/|\.test\.ts$/.test(target);
    if (isHelper && startsProcesses(target, visited)) return true;
  }
  return false;
}
