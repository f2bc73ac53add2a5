import type { CollectorOptions } from '@vmwright/runtime';
import { deletesMachines } from './annotations.ts';

/** Options of garbage collection that come from the settings. */
export type GarbageOptions = Pick<CollectorOptions<unknown>, 'world' | 'everyMs' | 'graceMs' | 'namespaces'>;

/** Options of garbage collection that are the same for every kind. */
export const GARBAGE = { deletesExternal: deletesMachines, hint: 'List them with: vmwright orphans' };
