import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { isRecord } from '../../api/record.ts';

/** Timeout of a command, including connecting. */
const TIMEOUT_MS = 5_000;

/**
 * Executes one QMP command of a machine. QMP exchanges lines of JSON: first a greeting, then responses interleaved with
 * events.
 * @param path the QMP socket
 * @returns the `return` value of the response
 */
export async function executeQmp(path: string, command: string, signal: AbortSignal): Promise<unknown> {
  const socket = connect(path);
  // An 'error' event without a listener would end the process. This listener ignores errors, because the code below
  // notices them. `once` throws an error that occurs while connecting. A later error ends the lines early.
  socket.on('error', () => undefined);
  const aborted = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const destroy = () => socket.destroy(new Error('the QMP monitor does not respond'));
  aborted.addEventListener('abort', destroy, { once: true });
  try {
    await once(socket, 'connect', { signal: aborted });
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    await nextMessage(lines, 'QMP');
    for (const execute of ['qmp_capabilities', command]) {
      socket.write(`${JSON.stringify({ execute })}\n`);
      const result = await nextMessage(lines, 'return');
      if (execute === command) return result;
    }
  } finally {
    aborted.removeEventListener('abort', destroy);
    socket.destroy();
  }
}

/** Waits for the next message that has the field, and returns the value of the field. Skips events. */
async function nextMessage(lines: AsyncIterator<string>, field: 'QMP' | 'return'): Promise<unknown> {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) throw new Error('the QMP monitor closed the connection');
    const message: unknown = JSON.parse(value);
    if (!isRecord(message)) throw new Error('the QMP monitor sent a message that is not an object');
    if (isRecord(message.error)) throw new Error(`QMP error: ${message.error.desc}`);
    if (field in message) return message[field];
  }
}
