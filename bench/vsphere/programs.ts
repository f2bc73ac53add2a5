import { join } from 'node:path';
import { temporaryFolder, type Vcsim } from '@vmwright/testbed';
import { bundle } from '../../tools/build/bundle.ts';
import { ENVIRONMENT, NODE_FLAGS } from '../../tools/build/launch.ts';
import { buildGo } from '../build.ts';
import { Program } from '../runtime/program.ts';
import type { Side } from '../runtime/programs.ts';
import { MACHINE } from './machine.ts';

/** Starts the program of one side. Both sides take the same arguments. */
export type Programs = (side: Side, vcsim: Vcsim, args: Readonly<Record<string, string | number>>) => Program;

/** Builds both programs as they would be shipped: the Go comparator compiled, our program bundled. */
export async function build(): Promise<Programs> {
  const folder = await temporaryFolder('bench');
  buildGo('govmomi', folder);
  const { program } = await bundle(new URL('ours.ts', import.meta.url), folder);
  const commands = {
    theirs: [join(folder, 'govmomi'), `--properties=${MACHINE.join()}`],
    ours: [process.execPath, ...NODE_FLAGS, program],
  };
  return (side, { host, username, password, caFile }, args) => {
    const [command = '', ...rest] = commands[side];
    const flags = Object.entries(args).map(([name, value]) => `--${name}=${value}`);
    return new Program(command, [...rest, ...flags], {
      VC_HOST: host,
      VC_USER: username,
      VC_PASS: password,
      VC_CA: caFile,
      ...ENVIRONMENT,
    });
  };
}
