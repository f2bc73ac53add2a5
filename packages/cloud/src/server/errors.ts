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
