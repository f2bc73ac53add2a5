/** Ownership of a machine. */
export interface Ownership {
  /** System that created the machine. */
  readonly manager: string;
  /** UID of the Kubernetes object that the machine belongs to. */
  readonly uid: string;
}

/** A machine of the remote backend. */
export interface RemoteMachine {
  readonly id: string;
  readonly size: number;
  readonly state: 'creating' | 'ready' | 'deleting';
  readonly owner?: Ownership;
  /** Idempotency key: while the machine exists, another create with this key returns this machine. */
  readonly key?: string;
  /** Milliseconds since 1970, by the backend's clock. */
  readonly createdMs: number;
}

/** Body of a create request. */
export type MachineDraft = Pick<RemoteMachine, 'size' | 'owner' | 'key'>;
