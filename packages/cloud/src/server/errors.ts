/** What keeps the cloud from starting, as a sentence for who starts it. */
export class StartError extends Error {
  /** Stable, for programs: which part it is about. */
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

/** `ENOENT` and its like, of what the system has refused. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
