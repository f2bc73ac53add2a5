/** Formats a time for a status or a message. @param ms milliseconds since 1970 */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
