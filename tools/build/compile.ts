import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CONFIG = fileURLToPath(new URL('tsconfig.json', import.meta.url));
const TSC = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));

/**
 * Compiles the sources of the packages to JavaScript and declarations. One run of the compiler covers all packages, so
 * that it checks each package against the sources of the others.
 * @param folderOf folder for the files of a package
 */
export function compile(packages: readonly string[], folderOf: (name: string) => string): void {
  const outDir = mkdtempSync(join(tmpdir(), 'vmwright-build-'));
  try {
    execFileSync(TSC, ['-p', CONFIG, '--outDir', outDir], { stdio: 'inherit' });
    for (const name of packages) cpSync(join(outDir, name, 'src'), folderOf(name), { recursive: true });
  } finally {
    rmSync(outDir, { recursive: true });
  }
}
