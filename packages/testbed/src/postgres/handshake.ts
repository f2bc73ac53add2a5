import { connect } from 'node:net';

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

const PROTOCOL_3_0 = 0x0003_0000;
const TIMEOUT_MS = 5_000;

/**
 * Returns true if the server accepts clients, and otherwise rejects with the server's error. An open port is not
 * enough. During startup and recovery, the server responds to a startup message with an error instead of a password
 * request. `pg_isready` makes the same check.
 */
export function acceptsClients({ host, port, user, database }: Address): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no response in ${TIMEOUT_MS / 1_000} s`)));
    socket.once('connect', () => socket.write(startupMessage({ user, database })));
    socket.once('data', (response) => {
      if (response.toString('latin1', 0, 1) === 'R') resolve(true);
      else reject(new Error(errorIn(response)));
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

/** Returns the message of an ErrorResponse: the field of type `M`. */
function errorIn(response: Buffer): string {
  const fields = response.toString('utf8', 5).split('\0');
  return fields.find((field) => field.startsWith('M'))?.slice(1) ?? 'the response is not from PostgreSQL';
}
