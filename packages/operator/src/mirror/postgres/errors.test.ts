import { describe, expect, test } from 'vitest';
import { DatabaseError } from '../database.ts';
import { toDatabaseError } from './errors.ts';

const errorWith = (code: string, message = 'failed') => Object.assign(new Error(message), { code });

describe('scopes of failures', () => {
  test.each([
    ['22001', 'a value is too long'],
    ['23502', 'a column must not be null'],
    ['23505', 'a unique index'],
    ['23514', 'a check constraint'],
    ['40001', 'a serialization failure'],
    ['40P01', 'a deadlock'],
    ['44000', 'the check option of a view'],
    ['55P03', 'a lock that is not available'],
    ['P0001', 'an exception that a trigger raises'],
  ])('a failure with the code %s (%s) has the scope rows', (code) => {
    expect(toDatabaseError(errorWith(code))).toMatchObject({ code, scope: 'rows' });
  });

  test.each([
    ['08006', 'a broken connection'],
    ['0A000', 'a cached plan that has another result type'],
    ['25006', 'a read-only transaction'],
    ['28P01', 'a wrong password'],
    ['42501', 'a missing privilege'],
    ['42P01', 'a missing table'],
    ['53100', 'a full disk'],
    ['53300', 'too many connections'],
    ['57014', 'a statement timeout'],
    ['57P01', 'an ended session'],
    ['57P03', 'a server that starts'],
    ['XX001', 'corrupted data'],
    ['ECONNRESET', 'a system error'],
    ['EPIPE', 'a system error with as many characters as a SQLSTATE'],
  ])('a failure with the code %s (%s) has the scope session', (code) => {
    expect(toDatabaseError(errorWith(code))).toMatchObject({ code, scope: 'session' });
  });
});

test('a thrown value without a code has the scope session', () => {
  expect(toDatabaseError(new Error('Query read timeout'))).toMatchObject({
    code: 'CONNECTION_LOST',
    scope: 'session',
    message: 'Query read timeout',
  });
  expect(toDatabaseError('odd')).toMatchObject({ code: 'CONNECTION_LOST', scope: 'session', message: 'odd' });
});

test('the message of a failure with a known code ends with a remedy', () => {
  expect(toDatabaseError(errorWith('53300', 'sorry, too many clients already')).message).toBe(
    'sorry, too many clients already; raise max_connections of the server, or connect through a pooler',
  );
});

test('a DatabaseError is returned unchanged, and other errors become the cause of a DatabaseError', () => {
  const known = new DatabaseError('taken over', 'FENCE_LOST', 'fence');
  expect(toDatabaseError(known)).toBe(known);
  const cause = errorWith('57P01');
  expect(toDatabaseError(cause).cause).toBe(cause);
});
