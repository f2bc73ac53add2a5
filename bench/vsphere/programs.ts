import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder, type Vcsim } from '@vmwright/testbed';
import { build as bundle } from 'rolldown';
import { Program } from '../runtime/program.ts';
import type { Side } from '../runtime/programs.ts';
import { MACHINE } from './machine.ts';

/** Starts the program of one side. Both sides take the same arguments. */
export type Programs = (side: Side, vcsim: Vcsim, args: Readonly<Record<string, string | number>>) => Program;

/** Builds both sides as they would be shipped: theirs compiled, ours bundled into one file with Node's compile cache. */
export async function build(): Promise<Programs> {
  const folder = await temporaryFolder('bench');
  const theirs = join(folder, 'govmomi');
  execFileSync('go', ['build', '-trimpath', '-buildvcs=false', '-mod=readonly', '-o', theirs, '.'], {
    cwd: fileURLToPath(new URL('../govmomi', import.meta.url)),
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: 'inherit',
  });
  const input = fileURLToPath(new URL('ours.ts', import.meta.url));
  await bundle({ input, platform: 'node', output: { dir: folder }, logLevel: 'silent' });
  const commands = {
    theirs: [theirs, `--properties=${MACHINE.join()}`],
    ours: [process.execPath, '--max-semi-space-size=4', join(folder, 'ours.js')], // the operator's flags
  };
  return (side, { host, username, password, caFile }, args) => {
    const [command = '', ...rest] = commands[side];
    const flags = Object.entries(args).map(([name, value]) => `--${name}=${value}`);
    return new Program(command, [...rest, ...flags], {
      ...{ VC_HOST: host, VC_USER: username, VC_PASS: password, VC_CA: caFile },
      NODE_COMPILE_CACHE: join(folder, 'compiled'),
    });
  };
}
