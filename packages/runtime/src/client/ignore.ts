import { AlreadyExistsError, type ApiError, NotFoundError } from './errors.ts';

/** Resolves to undefined instead of failing if the object does not exist. */
export function ignoreNotFound<T>(request: Promise<T>): Promise<T | undefined> {
  return ignore(NotFoundError, request);
}

/** Resolves to undefined instead of failing if an object of this name exists already. */
export function ignoreAlreadyExists<T>(request: Promise<T>): Promise<T | undefined> {
  return ignore(AlreadyExistsError, request);
}

async function ignore<T>(
  type: abstract new (...args: never) => ApiError,
  request: Promise<T>,
): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof type) return undefined;
    throw error;
  }
}
