const UNITS = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 0.001, µs: 0.001, ns: 0.000_001 } as const;
const PART = /(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/y;

/**
 * Default and maximum timeout of a review in milliseconds. The API server waits 1 to 30 s for admissions. For
 * conversions, it waits 30 s and sends no timeout. Only other clients send longer values.
 */
const MAX_MS = 30_000;

/**
 * Returns the timeout of a review in milliseconds. It is 5 % shorter than the timeout that the API server sends, such
 * as `?timeout=10s`, so that the error still reaches the API server.
 */
export function timeoutOf(parameter: string | null): number {
  const requested = parameter === null ? undefined : durationOf(parameter);
  return 0.95 * Math.min(requested ?? MAX_MS, MAX_MS);
}

/** Parses a Go duration, such as `1m30s` or `500ms`; undefined if it is invalid. */
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
