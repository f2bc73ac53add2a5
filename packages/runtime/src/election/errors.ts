/** Thrown by the fence of a leadership term that has ended or never began. */
export class NotLeadingError extends Error {
  readonly code = 'NOT_LEADING';

  constructor(lease: string) {
    super(`the leadership term of lease ${lease} has ended; another replica may lead now`);
    this.name = 'NotLeadingError';
  }
}

/** Abort reason of the leader's signal when the leader loses its lease, as opposed to a requested stop. */
export class LeadershipLostError extends Error {
  readonly code = 'LEADERSHIP_LOST';

  constructor(lease: string, why: string) {
    super(`lost leadership of lease ${lease}: ${why}`);
    this.name = 'LeadershipLostError';
  }
}

/** Thrown when the options of an election or of sharding are invalid. */
export class ElectionOptionsError extends Error {
  readonly code = 'ELECTION_OPTIONS';

  constructor(message: string) {
    super(message);
    this.name = 'ElectionOptionsError';
  }
}

/** Reported when the API server does not respond to a call of the election in time. */
export class ElectionTimeoutError extends Error {
  readonly code = 'ELECTION_TIMEOUT';

  constructor(lease: string, ms: number) {
    super(`lease ${lease}: no response within ${ms / 1000} s`);
    this.name = 'ElectionTimeoutError';
  }
}
