/** Thrown when the cloud cannot start. The message is printed to the user. */
export class StartError extends Error {
  /** Stable code of the part that failed. */
  readonly code: 'SETTINGS' | 'KEYS' | 'NAMES' | 'STORE' | 'DRIVER' | 'LISTEN';

  constructor(code: StartError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
    this.code = code;
  }
}

/** The text of whatever was thrown; never empty. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** Returns the `code` of a Node.js error, such as `ENOENT`. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
