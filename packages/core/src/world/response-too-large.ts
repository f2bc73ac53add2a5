/** Thrown when a response, or one line of it, exceeds the request's limit. The rest of the response is not read. */
export class ResponseTooLargeError extends Error {
  /** Identifies the error in packages that know the transport only by its interface. */
  readonly code = 'RESPONSE_TOO_LARGE';
  readonly retryable = false;
  /** Limit in bytes. */
  readonly limit: number;

  constructor(limit: number, part = 'the response') {
    super(`${part} is larger than the limit of ${sizeOf(limit)}`);
    this.name = 'ResponseTooLargeError';
    this.limit = limit;
  }
}

function sizeOf(bytes: number): string {
  if (bytes >= 1 << 20) return `${Math.round(bytes / (1 << 20))} MiB`;
  return bytes >= 1 << 10 ? `${Math.round(bytes / (1 << 10))} KiB` : `${bytes} bytes`;
}
