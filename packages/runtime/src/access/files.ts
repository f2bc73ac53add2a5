import { readFile } from 'node:fs/promises';
import { type Clock, messageOf } from '@vmwright/core';
import { AccessError } from './access.ts';
import { type Credentials, refreshedToken } from './credentials.ts';

/** How long a token is taken for current. Kubernetes gives a new one when 80 % of the old one's life is over. */
const TOKEN_TTL_MS = 60_000;

/**
 * The content of a file that somebody else rotates. Read each time, which is once a connection: an authority that is a
 * minute old would refuse a server that has just changed its certificate. While it cannot be read, the last one serves.
 */
export function rotatedFile(path: string): () => Promise<string> {
  let last: string | undefined;
  return async () => {
    try {
      last = await read(path);
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  };
}

export function tokenFile(clock: Clock, path: string): Credentials {
  return refreshedToken(clock, async () => {
    const value = (await read(path)).trim();
    // Whoever writes it in place empties it first.
    if (value === '') throw new AccessError(`${path} holds no token`);
    return { value, expiresAt: clock.now() + TOKEN_TTL_MS };
  });
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new AccessError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}
