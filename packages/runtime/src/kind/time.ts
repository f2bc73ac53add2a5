/**
 * A time as Kubernetes wants its micro-times (in Leases and Events): with exactly six digits of fraction, else it
 * answers 400.
 * @param ms since 1970; its fraction gives the microseconds
 */
export function microTime(ms: number): string {
  const micros = Math.round(ms * 1_000);
  const thousandths = ((micros % 1_000) + 1_000) % 1_000;
  const millis = new Date((micros - thousandths) / 1_000).toISOString();
  return `${millis.slice(0, -1)}${String(thousandths).padStart(3, '0')}Z`;
}
