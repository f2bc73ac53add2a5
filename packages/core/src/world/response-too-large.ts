/** An answer, or one line of it, is larger than the limit of its request. The connection was closed at the limit. */
export class ResponseTooLargeError extends Error {
  /** Other packages recognize the error by it: they know a transport by its shape alone. */
  readonly code = 'RESPONSE_TOO_LARGE';
  readonly retryable = false;
  /** In bytes. */
  readonly limit: number;

  constructor(limit: number, what = 'the answer') {
    super(`${what} is larger than the limit of ${sizeOf(limit)}`);
    this.name = 'ResponseTooLargeError';
    this.limit = limit;
  }
}

function sizeOf(bytes: number): string {
  if (bytes >= 1 << 20) return `${Math.round(bytes / (1 << 20))} MiB`;
  return bytes >= 1 << 10 ? `${Math.round(bytes / (1 << 10))} KiB` : `${bytes} bytes`;
}
