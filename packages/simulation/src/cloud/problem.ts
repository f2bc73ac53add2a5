import type { BufferedResponse } from '../world/server.ts';

/**
 * Error response of the modelled cloud. The texts are those of the real cloud, because controllers copy the texts into
 * statuses, and the differential test compares them.
 */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly serverId: string | undefined;

  constructor(status: number, code: string, detail: string, serverId?: string) {
    super(detail);
    this.name = 'Problem';
    this.status = status;
    this.code = code;
    this.serverId = serverId;
  }
}

export function problemResponse({ status, code, message, serverId }: Problem): BufferedResponse {
  return { status, body: JSON.stringify({ status, code, detail: message, serverId }) };
}

export function notFound(id: string): Problem {
  const detail = `Server ${id} does not exist. It may have been deleted; GET /servers lists the existing servers.`;
  return new Problem(404, 'NOT_FOUND', detail);
}

/**
 * Returns the error for a schema violation.
 * @param detail text of the error; the differential test ignores it, because the real cloud's validator uses other
 * words
 */
export function invalid(detail: string): Problem {
  return new Problem(422, 'INVALID_REQUEST', detail);
}
