/** Thrown when the cloud cannot start. The message is printed to the user. */
export class StartError extends Error {
  /** Stable code of the startup step that failed. */
  readonly code: 'SETTINGS' | 'KEYS' | 'NAMES' | 'STORE' | 'DRIVER' | 'LISTEN';

  constructor(code: StartError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
    this.code = code;
  }
}
