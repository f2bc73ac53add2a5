import { execFileSync } from 'node:child_process';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

/** Builds the commands of a Go module in `bench/` into a folder. */
export function buildGo(module: string, folder: string): void {
  const flags = ['-trimpath', '-buildvcs=false', '-mod=readonly'];
  execFileSync('go', ['build', ...flags, '-o', `${folder}/`, './...'], {
    cwd: fileURLToPath(new URL(module, import.meta.url)),
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: 'inherit',
  });
}

/** Bundles a program into one file, as it would be shipped. @returns the path of the file */
export async function bundle(program: URL, folder: string): Promise<string> {
  const input = fileURLToPath(program);
  await build({ input, platform: 'node', output: { dir: folder }, logLevel: 'silent' });
  return join(folder, `${basename(input, '.ts')}.js`);
}
