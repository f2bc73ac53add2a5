import { join } from 'node:path';
import { type Cluster, temporaryFolder } from '@vmwright/testbed';
import { buildGo, bundle } from '../build.ts';
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

/** Flags with which our programs run. Without them, V8's heap grows during the initial list and does not shrink (docs/runtime.md). */
export const NODE_FLAGS = ['--max-semi-space-size=4', '--heap-growing-percent=50'];

/** Environment of our programs. Without it, glibc keeps the memory of V8's compiler threads (docs/runtime.md). Go ignores it. */
export const MALLOC = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };

/** Builds both sides as they would be shipped: theirs compiled, ours bundled into one file with Node's compile cache. */
export async function build(): Promise<Programs> {
  const folder = await temporaryFolder('bench');
  buildGo('controller-runtime', folder);
  const ours = await bundle(new URL('ours.ts', import.meta.url), folder);
  const commands = {
    theirs: [join(folder, 'controller-runtime')],
    ours: [process.execPath, ...NODE_FLAGS, ours],
  };
  return (side, { kubeconfig }, args) => {
    const [command = '', ...rest] = commands[side];
    const flags = Object.entries(args).map(([name, value]) => `--${name}=${value}`);
    return new Program(command, [...rest, ...flags], {
      KUBECONFIG: kubeconfig,
      NODE_COMPILE_CACHE: join(folder, 'compiled'),
      ...MALLOC,
    });
  };
}
