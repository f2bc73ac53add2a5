/**
 * Formats a Kubernetes MicroTime (in Leases and Events). It needs exactly six fractional digits; the API server rejects
 * anything else with a 400.
 * @param ms milliseconds since 1970; the fraction gives the microseconds
 */
export function microTime(ms: number): string {
  const micros = Math.round(ms * 1_000);
  const thousandths = ((micros % 1_000) + 1_000) % 1_000;
  const millis = new Date((micros - thousandths) / 1_000).toISOString();
  return `${millis.slice(0, -1)}${String(thousandths).padStart(3, '0')}Z`;
}
