/** The leader's term in which the work began has ended, or never began. */
export class NotLeadingError extends Error {
  readonly code = 'NOT_LEADING';

  constructor(lease: string) {
    super(`not the leader by lease ${lease}, or not in this term any more: another may act by now`);
    this.name = 'NotLeadingError';
  }
}

/** Why a leader's signal has aborted, where nobody asked it to stop. */
export class LeadershipLostError extends Error {
  readonly code = 'LEADERSHIP_LOST';

  constructor(lease: string, why: string) {
    super(`leadership by lease ${lease} is lost: ${why}`);
    this.name = 'LeadershipLostError';
  }
}

/** The times or names given cannot work. */
export class ElectionOptionsError extends Error {
  readonly code = 'ELECTION_OPTIONS';

  constructor(message: string) {
    super(message);
    this.name = 'ElectionOptionsError';
  }
}

/** The API server was too slow for the election to wait any longer. */
export class ElectionTimeoutError extends Error {
  readonly code = 'ELECTION_TIMEOUT';

  constructor(lease: string, ms: number) {
    super(`lease ${lease}: no answer within ${ms / 1000} s`);
    this.name = 'ElectionTimeoutError';
  }
}
