import type { ServerAddress } from '@vmwright/core';
import type { Credentials } from './credentials.ts';

/** Where an API server is, and who we are to it. */
export interface Access {
  readonly server: ServerAddress;
  readonly credentials: Credentials;
  /** The namespace that is meant when none is named. */
  readonly namespace: string;
}

/** What is wrong with the settings by which an API server is reached; the message says what to do. */
export class AccessError extends Error {
  readonly code = 'ACCESS';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AccessError';
  }
}
