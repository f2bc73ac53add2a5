/** What a server is going through. */
export type ServerState = 'building' | 'running' | 'failed' | 'deleting';

export const SERVER_STATES: readonly ServerState[] = ['building', 'running', 'failed', 'deleting'];

export type Labels = Readonly<Record<string, string>>;

/** Null takes a label away. */
export type LabelChanges = Readonly<Record<string, string | null>>;

/** A virtual machine of the cloud, as its API shows it. */
export interface Server {
  /** A UUID that the cloud has chosen; it never changes. */
  readonly id: string;
  readonly name: string;
  readonly labels: Labels;
  readonly state: ServerState;
  /** Why it has failed, or what stands in the way of its deletion. */
  readonly message?: string;
  /** Whole percent, 0 to 100. */
  readonly cpuUtilization: number;
  /** RFC 3339. */
  readonly createdAt: string;
}

/** The part of a server that changes by itself. */
export type ServerStatus = Pick<Server, 'state' | 'cpuUtilization' | 'message'>;

/** A server as one asks for it. */
export interface NewServer {
  /** 1 to 63 letters, digits, hyphens, underscores and dots. */
  readonly name: string;
  readonly labels?: Labels;
}
