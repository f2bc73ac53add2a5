import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { isRecord } from '../../api/record.ts';

/** A monitor that does not answer for so long is not going to. */
const TIMEOUT_MS = 5_000;

/**
 * Asks a machine's monitor one thing (QMP: JSON objects, a line each; a greeting, then answers among events).
 * @returns what it answers
 */
export async function askMonitor(path: string, command: string, signal: AbortSignal): Promise<unknown> {
  const socket = connect(path);
  socket.on('error', () => undefined); // told to who waits: before it is connected by `once`, then by the end of the lines
  const ended = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const end = () => socket.destroy(new Error('the monitor does not answer'));
  ended.addEventListener('abort', end, { once: true });
  try {
    await once(socket, 'connect', { signal: ended });
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    await answerIn(lines, 'QMP');
    for (const execute of ['qmp_capabilities', command]) {
      socket.write(`${JSON.stringify({ execute })}\n`);
      const answer = await answerIn(lines, 'return');
      if (execute === command) return answer;
    }
  } finally {
    ended.removeEventListener('abort', end);
    socket.destroy();
  }
}

async function answerIn(lines: AsyncIterator<string>, field: 'QMP' | 'return'): Promise<unknown> {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) throw new Error('the monitor has closed the connection');
    const message: unknown = JSON.parse(value);
    if (!isRecord(message)) throw new Error('the monitor says what is no object');
    if (isRecord(message.error)) throw new Error(`the monitor refuses: ${message.error.desc}`);
    if (field in message) return message[field];
  }
}
