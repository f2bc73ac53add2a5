import type { ServerAddress } from '@vmwright/core';
import type { Credentials } from './credentials.ts';

/** Address of an API server and the credentials for it. */
export interface Access {
  readonly server: ServerAddress;
  readonly credentials: Credentials;
  /** Namespace to use when the caller names none. */
  readonly namespace: string;
}

/** Thrown when a kubeconfig, credential or service account mount is missing or invalid; the message says what to do. */
export class AccessError extends Error {
  readonly code = 'ACCESS';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AccessError';
  }
}
