/** SQLite application_id that identifies a vmwright-cloud database ("vmwr"). */
export const APPLICATION_ID = 0x766d7772;

/**
 * Schema migrations, in order. The schema version (`user_version`) is the number of applied migrations. A released
 * migration must never be changed; append a new one instead.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE servers (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- order of lists; AUTOINCREMENT never reuses a value, so that cursors stay valid
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    labels TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('building', 'running', 'failed', 'deleting')),
    message TEXT,
    key TEXT,
    created_at INTEGER NOT NULL,
    deleting_since INTEGER
  ) STRICT;

  -- Idempotency keys. A key outlives its server, so that a late duplicate of the create does not recreate it.
  CREATE TABLE keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    server TEXT NOT NULL UNIQUE,
    deleted_at INTEGER
  ) STRICT, WITHOUT ROWID;

  -- Events that may not be in the audit log yet.
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    event TEXT NOT NULL
  ) STRICT;

  CREATE TABLE about (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
];
