import { join } from 'node:path';
import { temporaryFolder, type Vcsim } from '@vmwright/testbed';
import { buildGo, bundle } from '../build.ts';
import { Program } from '../runtime/program.ts';
import type { Side } from '../runtime/programs.ts';
import { MACHINE } from './machine.ts';

/** Starts the program of one side. Both sides take the same arguments. */
export type Programs = (side: Side, vcsim: Vcsim, args: Readonly<Record<string, string | number>>) => Program;

/** Builds both sides as they would be shipped: theirs compiled, ours bundled into one file with Node's compile cache. */
export async function build(): Promise<Programs> {
  const folder = await temporaryFolder('bench');
  buildGo('govmomi', folder);
  const ours = await bundle(new URL('ours.ts', import.meta.url), folder);
  const commands = {
    theirs: [join(folder, 'govmomi'), `--properties=${MACHINE.join()}`],
    ours: [process.execPath, '--max-semi-space-size=4', ours], // the operator's flags
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
