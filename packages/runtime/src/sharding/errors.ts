/** One acts on an object in a shard that is another's, or nobody's at the moment. */
export class NotOwningError extends Error {
  readonly code = 'NOT_OWNING';

  constructor(key: string, sharding: string) {
    super(`${key} is not this replica's by sharding ${sharding}: another may act on it by now`);
    this.name = 'NotOwningError';
  }
}

/** Why work on a shard was asked to end: another replica should have it. */
export class ShardLeavingError extends Error {
  readonly code = 'SHARD_LEAVING';

  constructor(shard: number, sharding: string) {
    super(`shard ${shard} of sharding ${sharding} goes to another replica`);
    this.name = 'ShardLeavingError';
  }
}

/** Why work on all shards was asked to end, where nobody asked the program to stop. */
export class ShardsLostError extends Error {
  readonly code = 'SHARDS_LOST';

  constructor(sharding: string, options: { readonly cause: unknown }) {
    const why = options.cause instanceof Error ? options.cause.message : String(options.cause);
    super(`all shards of sharding ${sharding} are lost: ${why}`, options);
    this.name = 'ShardsLostError';
  }
}
