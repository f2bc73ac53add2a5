/** The text of whatever was thrown; never empty, and never throws itself. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  if (error instanceof Error) return error.message || error.name;
  try {
    return String(error);
  } catch {
    return 'something without a text was thrown';
  }
}
