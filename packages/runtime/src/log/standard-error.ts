import { writeSync } from 'node:fs';

const STANDARD_ERROR = 2;
/** How long to leave a reader that cannot keep up before the next try. */
const PAUSE_MS = 2;

/**
 * Writes to standard error, all of it before it returns. Not by `process.stderr`: to a pipe that is full, Node keeps the
 * rest for later, and a process that ends before that loses it (tried: nine tenths of 5,000
 * lines to a slow reader).
 */
export function writeToStandardError(line: string): void {
  let rest: Uint8Array = Buffer.from(line);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(STANDARD_ERROR, rest));
    } catch (error) {
      // That nobody reads the log any more is no reason to end.
      if (!isFull(error)) return;
      pause();
    }
  }
}

/** A pipe does not block once anything in the process has used `process.stderr`: it then says that it is full. */
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}

const nobody = new Int32Array(new SharedArrayBuffer(4));

function pause(): void {
  Atomics.wait(nobody, 0, 0, PAUSE_MS);
}
