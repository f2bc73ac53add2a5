const UNITS = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 0.001, µs: 0.001, ns: 0.000_001 } as const;
const PART = /(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/y;

/**
 * Default and maximum time for an answer in milliseconds. The API server gives admissions 1 to 30 s, and conversions,
 * for which it does not say, 30 s. Longer values come from other clients.
 */
const MAX_MS = 30_000;

/**
 * Time for an answer in milliseconds, from the API server's `?timeout=10s`: 5 % less than that, so that the error message
 * still reaches the API server.
 */
export function deadlineOf(timeout: string | null): number {
  const asked = timeout === null ? undefined : durationOf(timeout);
  return 0.95 * Math.min(asked ?? MAX_MS, MAX_MS);
}

/** As Go writes one: `1m30s`, `500ms`. */
function durationOf(text: string): number | undefined {
  PART.lastIndex = 0;
  let [sum, end] = [0, 0];
  for (let part = PART.exec(text); part !== null; part = PART.exec(text)) {
    const [, amount, unit] = part;
    for (const [name, ms] of Object.entries(UNITS)) if (name === unit) sum += Number(amount) * ms;
    end = PART.lastIndex;
  }
  return end === text.length && sum > 0 ? sum : undefined;
}
