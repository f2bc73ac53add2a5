/** Thrown when a replica acts on an object in a shard that it does not own. */
export class NotOwningError extends Error {
  readonly code = 'NOT_OWNING';

  constructor(key: string, sharding: string) {
    super(`this replica does not own ${key} in sharding ${sharding}: another replica may act on it`);
    this.name = 'NotOwningError';
  }
}

/** Abort reason of work on a shard that is being handed over to another replica. */
export class ShardLeavingError extends Error {
  readonly code = 'SHARD_LEAVING';

  constructor(shard: number, sharding: string) {
    super(`shard ${shard} of sharding ${sharding} is being handed over to another replica`);
    this.name = 'ShardLeavingError';
  }
}

/** Abort reason of work on all shards when the replica loses its membership, as opposed to a requested stop. */
export class ShardsLostError extends Error {
  readonly code = 'SHARDS_LOST';

  constructor(sharding: string, options: { readonly cause: unknown }) {
    const reason = options.cause instanceof Error ? options.cause.message : String(options.cause);
    super(`all shards of sharding ${sharding} are lost: ${reason}`, options);
    this.name = 'ShardsLostError';
  }
}
