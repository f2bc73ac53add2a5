/**
 * Writes packages/vsphere/src/vim25/*.generated.ts. Part of `make generate`; with `--check`, the part of `make check`
 * that says whether it would change anything.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = 'packages/vsphere/src/vim25';
const isCheck = process.argv.includes('--check');

if (isCheck && spawnSync('go', ['version']).status !== 0)
  console.warn('generated vim25 types: not checked, since Go is not installed');
else generate();

function generate(): void {
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, text] of Object.entries(written())) {
    const file = join(FOLDER, name);
    const made = formatted(file, String(text));
    if (!isCheck) writeFileSync(file, made);
    else if (made !== kept(file)) {
      console.error(`${file} is not what \`make generate\` writes; run it and commit the result`);
      process.exitCode = 1;
    }
  }
}

function written(): object {
  const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
  const args = ['-C', 'tools/vim25', 'run', '-trimpath', '-buildvcs=false', '-mod=readonly', '.'];
  return JSON.parse(execFileSync('go', args, { env, encoding: 'utf8', maxBuffer: 2 ** 26 }));
}

function formatted(file: string, text: string): string {
  return execFileSync('biome', ['format', `--stdin-file-path=${file}`], { input: text, encoding: 'utf8' });
}

function kept(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
