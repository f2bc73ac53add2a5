/*
 * The parts of undici that are used, by their own paths: its index also loads fetch, WebSocket, caches and mocks, which
 * cost 14 MB and 40 ms at the start of a program that has no use for them (docs/decisions/008-undici.md).
 */
declare module 'undici/lib/dispatcher/pool.js' {
  import type { Pool } from 'undici';

  const PoolClass: typeof Pool;
  export = PoolClass;
}

declare module 'undici/lib/core/connect.js' {
  import type { buildConnector } from 'undici';

  const build: typeof buildConnector;
  export = build;
}
