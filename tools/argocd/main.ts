/**
 * Part of `make generate`: writes the health checks for Argo CD to config/argocd. With `--check`, part of `make check`: fails if they are
 * out of date.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { argocdFiles } from './checks.ts';

const FOLDER = fileURLToPath(new URL('../../config/argocd/', import.meta.url));

const files = await argocdFiles();
const committed = new Map(
  globSync('**/*.{lua,yaml}', { cwd: FOLDER }).map((path) => [
    path,
    readFileSync(join(FOLDER, path), 'utf8'),
  ]),
);
if (process.argv[2] === '--check') {
  for (const path of new Set([...files.keys(), ...committed.keys()])) {
    if (files.get(path) === committed.get(path)) continue;
    console.error(`config/argocd/${path} is out of date; run \`make generate\` and commit the result`);
    process.exitCode = 1;
  }
} else {
  rmSync(FOLDER, { recursive: true, force: true });
  for (const [path, text] of files) {
    mkdirSync(dirname(join(FOLDER, path)), { recursive: true });
    writeFileSync(join(FOLDER, path), text);
  }
}
