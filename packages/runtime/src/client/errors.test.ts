import { expect, test } from 'vitest';
import { AlreadyExistsError, ApiError, apiError, NotFoundError } from './errors.ts';

test.each(['constructor', 'toString', '__proto__'])(
  'a response with the unknown reason %s is classified by its status',
  (reason) => {
    expect(apiError('GET /x: no', { status: 404, reason })).toBeInstanceOf(NotFoundError);
    expect(apiError('GET /x: no', { status: 418, reason })).toBeInstanceOf(ApiError);
  },
);

test('a known reason determines the error class, even if the HTTP status maps to another class', () => {
  expect(apiError('POST /x: no', { status: 409, reason: 'AlreadyExists' })).toBeInstanceOf(
    AlreadyExistsError,
  );
});
