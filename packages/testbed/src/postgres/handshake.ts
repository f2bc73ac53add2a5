import { connect } from 'node:net';

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

const PROTOCOL_3_0 = 0x0003_0000;
const SILENCE_MS = 5_000;

/**
 * Whether the server lets clients in; throws what it says while it does not. Asked as `pg_isready` asks: only a server
 * that is through with its start (and with recovery, after a kill) answers a client's first message by demanding the
 * password; before that it answers with an error, although its port is open.
 */
export function letsClientsIn({ host, port, user, database }: Address): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error(`nothing said in ${SILENCE_MS / 1_000} s`)));
    socket.once('connect', () => socket.write(startupMessage({ user, database })));
    socket.once('data', (answer) => {
      if (answer.toString('latin1', 0, 1) === 'R') resolve(true);
      else reject(new Error(complaint(answer)));
      socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the connection was closed')));
  });
}

function startupMessage(parameters: Readonly<Record<string, string>>): Buffer {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}\0${value}\0`);
  const body = Buffer.from(`${pairs.join('')}\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + body.length, 0);
  head.writeInt32BE(PROTOCOL_3_0, 4);
  return Buffer.concat([head, body]);
}

/** An error's text: of its fields, each a letter and a string, the one with the letter M. */
function complaint(answer: Buffer): string {
  const fields = answer.toString('utf8', 5).split('\0');
  return fields.find((field) => field.startsWith('M'))?.slice(1) ?? 'an answer that is not PostgreSQL';
}
