import type { Readable } from 'node:stream';

/**
 * Takes a heap snapshot. The process is blocked while the snapshot is taken, and again while it is written to the
 * stream.
 */
export function takeHeapSnapshot(): Readable {
  return process.getBuiltinModule('node:v8').getHeapSnapshot();
}
