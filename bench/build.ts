import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Builds the commands of a Go module in `bench/` into a folder. */
export function buildGo(module: string, folder: string): void {
  const flags = ['-trimpath', '-buildvcs=false', '-mod=readonly'];
  execFileSync('go', ['build', ...flags, '-o', `${folder}/`, './...'], {
    cwd: fileURLToPath(new URL(module, import.meta.url)),
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: 'inherit',
  });
}
