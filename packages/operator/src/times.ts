/** Formats a time of a status or of a message. @param ms milliseconds since 1970 */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
