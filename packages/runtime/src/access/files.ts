import { readFile } from 'node:fs/promises';
import { type Clock, messageOf } from '@vmwright/core';
import { AccessError } from './access.ts';
import { type Credentials, refreshedToken } from './credentials.ts';

/**
 * Milliseconds for which the content of a token file is cached. The kubelet replaces the token after 80 % of its
 * lifetime, so a cached token is still valid.
 */
const TOKEN_TTL_MS = 60_000;

/**
 * Returns a function that reads a file that another program rotates. Each call reads the file, because a cached CA
 * would reject a server that has just changed its certificate. If the file cannot be read, the function returns the
 * content of the last successful read, or throws if there was none.
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

/** Bearer token from a file that another program rotates. The file is read again after a minute and after a 401. */
export function tokenFile(clock: Clock, path: string): Credentials {
  return refreshedToken(clock, async () => {
    const value = (await read(path)).trim();
    // A writer that rewrites the file in place truncates it first. After this error the previous token stays in use.
    if (value === '') throw new AccessError(`${path} is empty; it must contain a bearer token`);
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
