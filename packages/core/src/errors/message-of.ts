/** Returns the text of a thrown value; for an error without a message, its name. Never throws. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  if (error instanceof Error) return error.message || error.name;
  try {
    return String(error);
  } catch {
    return 'a value that cannot be converted to a string was thrown';
  }
}
