import { messageOf } from '@vmwright/runtime';
import { DatabaseError, type FailureScope } from '../database.ts';

/**
 * SQLSTATE classes of failures that concern the rows of a batch: data exceptions, constraint violations, serialization
 * failures and deadlocks, violations of WITH CHECK OPTION, and errors raised by triggers.
 */
const ROW_CLASSES: ReadonlySet<string> = new Set(['22', '23', '40', '44', 'P0']);
/**
 * SQLSTATE of a statement that fails because another transaction holds a lock. Like the failures in `ROW_CLASSES`, this
 * failure concerns the rows of a batch.
 */
export const LOCK_NOT_AVAILABLE = '55P03';

/** Code of the failure when TLS is required and the server does not offer it. */
export const NO_TLS = 'NO_TLS';

/** Remedies for common failures, by SQLSTATE or system error code. */
const REMEDIES: Readonly<Record<string, string>> = {
  '28P01': 'check the user name and the password',
  '28000': 'check pg_hba.conf, the user name and the TLS mode',
  '3D000': 'check the name of the database',
  '42P01': 'check that the schema of SSVirt is installed in this database and on the search path',
  '42703': 'check that the schema of SSVirt has the expected columns',
  '42501': 'grant the missing privilege (docs/mirror.md)',
  '25006': 'check that the address leads to the primary server',
  '26000': 'a pooler in transaction mode needs the fence "table"',
  '42P05': 'a pooler in transaction mode needs the fence "table"',
  '53300': 'raise max_connections of the server, or connect through a pooler',
  ECONNREFUSED: 'check the address, and that the server runs',
  ENOTFOUND: 'check the host name',
  EAI_AGAIN: 'check the host name',
  [NO_TLS]: 'enable TLS on the server, or change the TLS mode',
  ERR_TLS_CERT_ALTNAME_INVALID: 'check the host name, or use the TLS mode verify-ca',
  CERT_HAS_EXPIRED: 'renew the certificate of the server',
  ...Object.fromEntries(
    [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ].map((code) => [code, 'check sslrootcert, the file with the CA certificates to trust']),
  ),
};

/**
 * Converts an error of the client library. Keeps the message of PostgreSQL or of the client library; neither contains
 * credentials.
 */
export function toDatabaseError(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  const code = codeOf(error);
  const remedy = REMEDIES[code];
  const message = remedy === undefined ? messageOf(error) : `${messageOf(error)}; ${remedy}`;
  return new DatabaseError(message, code, scopeOf(code), { cause: error });
}

/** Code for errors of pg that have no code, such as `Connection terminated unexpectedly`. */
const CONNECTION_LOST = 'CONNECTION_LOST';

function codeOf(error: unknown): string {
  if (error instanceof Error && /does not support SSL/.test(error.message)) return NO_TLS;
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : CONNECTION_LOST;
}

function scopeOf(code: string): FailureScope {
  return code === LOCK_NOT_AVAILABLE || (code.length === 5 && ROW_CLASSES.has(code.slice(0, 2)))
    ? 'rows'
    : 'session';
}
