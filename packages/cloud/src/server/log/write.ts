import { writeSync } from 'node:fs';

/** How long to leave a reader that cannot keep up before the next try. */
const PAUSE_MS = 2;

export const STANDARD_OUTPUT = 1;
export const STANDARD_ERROR = 2;

/**
 * Writes all of it before it returns: what Node keeps back for a slow pipe is lost when the process is killed. That
 * nobody reads any more is no reason to end.
 * @throws where it cannot be written: its disk is full, say
 */
export function writeAll(descriptor: number, text: string): void {
  let rest: Uint8Array = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code === 'EPIPE') return;
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(nobody, 0, 0, PAUSE_MS);
    }
  }
}

const nobody = new Int32Array(new SharedArrayBuffer(4));
