/** Whose a machine is. */
export interface Mark {
  /** Which system has made it. */
  readonly manager: string;
  /** Of the object that it stands for. */
  readonly uid: string;
}

/** A machine of the remote backend. */
export interface RemoteMachine {
  readonly id: string;
  readonly size: number;
  readonly state: 'creating' | 'ready' | 'deleting';
  readonly owner?: Mark;
  /** Under which it was created: a second create with it gets this machine, for as long as it is there. */
  readonly key?: string;
  /** Milliseconds since 1970, by the backend's clock. */
  readonly createdMs: number;
}

/** What is asked for. */
export type MachineDraft = Pick<RemoteMachine, 'size' | 'owner' | 'key'>;
