/**
 * Writes packages/vsphere/src/vim25/*.generated.ts; `make generate` runs it. With `--check`, writes nothing and fails
 * if a file is out of date; `make check` runs it this way.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = 'packages/vsphere/src/vim25';
const isCheck = process.argv.includes('--check');

if (isCheck && spawnSync('go', ['version']).status !== 0)
  console.warn('Skipping the check of the generated vim25 types: Go is not installed');
else generate();

function generate(): void {
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, text] of Object.entries(generatedFiles())) {
    const file = join(FOLDER, name);
    const expected = format(file, String(text));
    if (!isCheck) writeFileSync(file, expected);
    else if (expected !== existing(file)) {
      console.error(`${file} is outdated: run \`make generate\` and commit the result`);
      process.exitCode = 1;
    }
  }
}

function generatedFiles(): object {
  const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
  const args = ['-C', 'tools/vim25', 'run', '-trimpath', '-buildvcs=false', '-mod=readonly', '.'];
  return JSON.parse(execFileSync('go', args, { env, encoding: 'utf8', maxBuffer: 2 ** 26 }));
}

function format(file: string, text: string): string {
  return execFileSync('biome', ['format', `--stdin-file-path=${file}`], { input: text, encoding: 'utf8' });
}

function existing(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
