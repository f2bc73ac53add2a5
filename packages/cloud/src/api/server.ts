/** Lifecycle state of a server. */
export type ServerState = 'building' | 'running' | 'failed' | 'deleting';

export const SERVER_STATES: readonly ServerState[] = ['building', 'running', 'failed', 'deleting'];

export type Labels = Readonly<Record<string, string>>;

/** Labels to set. A null value removes the label. */
export type LabelChanges = Readonly<Record<string, string | null>>;

/** A virtual machine of the cloud, as returned by the API. */
export interface Server {
  /** UUID assigned by the cloud. Never changes. */
  readonly id: string;
  readonly name: string;
  readonly labels: Labels;
  readonly state: ServerState;
  /** Why the server failed, or why its deletion is delayed. */
  readonly message?: string;
  /** CPU utilization as an integer percentage, 0 to 100. */
  readonly cpuUtilization: number;
  /** RFC 3339. */
  readonly createdAt: string;
}

/** The fields of a server that change without a request. */
export type ServerStatus = Pick<Server, 'state' | 'cpuUtilization' | 'message'>;

/** Request body to create a server. */
export interface NewServer {
  /** Name of 1 to 63 characters, each a letter, digit, hyphen, underscore or dot. */
  readonly name: string;
  readonly labels?: Labels;
}
