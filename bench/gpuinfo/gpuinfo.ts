import type { Row } from '../bar.ts';
import { allocation } from './allocation.ts';
import { changes } from './changes.ts';

/**
 * Measures the cost of a node change in a large cluster: first for the allocation alone, then for the operator as a
 * process with a real API server.
 */
export async function* gpuinfo(part?: string): AsyncGenerator<Row> {
  for (const measure of [allocation, changes])
    if (part === undefined || part === measure.name) yield* measure();
}
