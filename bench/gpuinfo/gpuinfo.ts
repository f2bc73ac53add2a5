import type { Row } from '../bar.ts';
import { allocation } from './allocation.ts';
import { changes } from './changes.ts';

/** Cost of a change of a node in a large cluster: the allocation alone, and the operator as a process with a real API server. */
export async function* gpuinfo(part?: string): AsyncGenerator<Row> {
  for (const measure of [allocation, changes])
    if (part === undefined || part === measure.name) yield* measure();
}
