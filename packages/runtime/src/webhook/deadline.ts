const UNITS = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 0.001, µs: 0.001, ns: 0.000_001 } as const;
const PART = /(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/y;

/** What is waited for where nobody says how long: conversions, which the API server gives as long as its own request. */
const USUAL_MS = 30_000;

/**
 * When to give up on an answer, by what the API server says in `?timeout=10s`: a twentieth earlier than it does, so that
 * our sentence still reaches it.
 */
export function deadlineOf(timeout: string | null): number {
  return 0.95 * (timeout === null ? USUAL_MS : (durationOf(timeout) ?? USUAL_MS));
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
