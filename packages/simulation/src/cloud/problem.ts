import type { WholeAnswer } from '../world/server.ts';

/** A request that is refused, in the words of the real cloud: they end up in a status, and are compared. */
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

export function problemAnswer({ status, code, message, serverId }: Problem): WholeAnswer {
  return { status, body: JSON.stringify({ status, code, detail: message, serverId }) };
}

export function notFound(id: string): Problem {
  const detail = `Server ${id} does not exist. It may have been deleted; GET /servers lists the existing servers.`;
  return new Problem(404, 'NOT_FOUND', detail);
}

/** @param detail for people only: of what breaks a rule, the real cloud's validator has its own words */
export function invalid(detail: string): Problem {
  return new Problem(422, 'INVALID_REQUEST', detail);
}
