import { NotFoundError } from '@vmwright/cloud';

/** What the cloud answers; undefined where it has no such server (any more). */
export async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
