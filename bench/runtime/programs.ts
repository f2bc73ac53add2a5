import { join } from 'node:path';
import { type Cluster, temporaryFolder } from '@vmwright/testbed';
import { bundle } from '../../tools/build/bundle.ts';
import { ENVIRONMENT, NODE_FLAGS } from '../../tools/build/launch.ts';
import { buildGo } from '../build.ts';
import { Program } from './program.ts';

export const SIDES = ['theirs', 'ours'] as const;
export type Side = (typeof SIDES)[number];

/** Starts the program of one side. Both sides take the same arguments. */
export type Programs = (
  side: Side,
  cluster: Cluster,
  args: Readonly<Record<string, string | number>>,
) => Program;

export interface Bench {
  readonly cluster: Cluster;
  readonly programs: Programs;
}

/** Builds both programs as they would be shipped: the Go comparator compiled, our program bundled. */
export async function build(): Promise<Programs> {
  const folder = await temporaryFolder('bench');
  buildGo('controller-runtime', folder);
  const { program } = await bundle(new URL('ours.ts', import.meta.url), folder);
  const commands = {
    theirs: [join(folder, 'controller-runtime')],
    ours: [process.execPath, ...NODE_FLAGS, program],
  };
  return (side, { kubeconfig }, args) => {
    const [command = '', ...rest] = commands[side];
    const flags = Object.entries(args).map(([name, value]) => `--${name}=${value}`);
    return new Program(command, [...rest, ...flags], {
      KUBECONFIG: kubeconfig,
      ...ENVIRONMENT, // memory settings of glibc for our program; Go programs ignore them
    });
  };
}
