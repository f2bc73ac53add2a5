import type { Readable } from 'node:stream';

/** Takes a heap snapshot. Blocks the process while it is taken, and while parts of it are written to the stream. */
export function takeHeapSnapshot(): Readable {
  return process.getBuiltinModule('node:v8').getHeapSnapshot();
}
