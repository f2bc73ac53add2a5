import { expect, test } from 'vitest';
import { AlreadyExistsError, ApiError, apiError, NotFoundError } from './errors.ts';

test.each(['constructor', 'toString', '__proto__'])(
  'an answer with the reason %s, which every object inherits, is an error of its status',
  (reason) => {
    expect(apiError('GET /x: no', { status: 404, reason })).toBeInstanceOf(NotFoundError);
    expect(apiError('GET /x: no', { status: 418, reason })).toBeInstanceOf(ApiError);
  },
);

test('a known reason decides before the status', () => {
  expect(apiError('POST /x: no', { status: 409, reason: 'AlreadyExists' })).toBeInstanceOf(
    AlreadyExistsError,
  );
});
