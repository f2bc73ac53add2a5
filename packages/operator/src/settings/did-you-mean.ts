/** Maximum edit distance between a wrong name and a suggestion. */
const MOST_EDITS = 3;

/**
 * Returns ` (did you mean "x"?)` for the known name that is most similar to a wrong name; empty if no known name is
 * similar.
 */
export function didYouMean(wrong: string, known: readonly string[]): string {
  const best = known
    .map((name) => ({ name, edits: distance(wrong.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, edits }) => edits <= MOST_EDITS && edits < name.length / 2)
    .toSorted((a, b) => a.edits - b.edits)[0];
  return best === undefined ? '' : ` (did you mean "${best.name}"?)`;
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
