/** Marks a database as ours ("vmwr"): SQLite's own place for that. */
export const APPLICATION_ID = 0x766d7772;

/**
 * What brings a database from one version to the next; the version is how many of these were carried out. One that has
 * been released is never changed, only followed by another.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE servers (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of lists: never given out twice, so that a cursor stays true
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    labels TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('building', 'running', 'failed', 'deleting')),
    message TEXT,
    key TEXT,
    created_at INTEGER NOT NULL,
    deleting_since INTEGER
  ) STRICT;

  -- Outlives its server: a create that arrives after the delete must not bring it back.
  CREATE TABLE keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    server TEXT NOT NULL UNIQUE,
    deleted_at INTEGER
  ) STRICT, WITHOUT ROWID;

  -- What happened and is not known to be written to the audit log yet.
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
