/**
 * Replays a tape (the recorded choices of a run). Returns the number of lines in the trace of this run, or undefined if
 * the violation does not occur.
 */
export type Shows = (tape: readonly number[]) => Promise<number | undefined>;

/**
 * When two tapes are compared, a non-zero choice weighs as much as this many lines of the trace. The value is a
 * compromise, measured on three failing seeds. With a weight of 1, shrinking needed three times as many tries. When
 * choices were compared first and lines second, one trace became twice as long.
 */
const FAULT_LINES = 5;

export interface ShrinkOptions {
  /** Maximum number of tries. @default 3,000 */
  readonly tries?: number;
  /** Stops early and returns the best tape so far. */
  readonly signal?: AbortSignal;
}

export interface Shrunk {
  readonly tape: readonly number[];
  readonly tries: number;
}

/**
 * Shrinks a tape. The result has a short trace and few faults, and still shows the violation.
 *
 * Flow:
 * 1. Cuts off the end after the failure.
 * 2. Zeroes or removes pieces: halves of the tape, then quarters, and so on down to single choices.
 * 3. Lowers the remaining choices.
 * 4. Repeats steps 2 and 3 until nothing improves.
 *
 * Guarantees: the result shows the violation if the given tape did.
 *
 * Zeroing a choice drops at most one fault, and mostly keeps the meaning of the following choices. Removing a choice
 * shifts the meaning of all following choices. The result is mostly a different run, but sometimes a much shorter one.
 * On three failing seeds, fast-check's array shrinking needed two to nine times the tries, for traces of about the same
 * length.
 */
export async function shrink(
  tape: readonly number[],
  shows: Shows,
  { tries: most = 3_000, signal }: ShrinkOptions = {},
): Promise<Shrunk> {
  let best: Candidate = { tape: withoutEnd(tape), story: Number.POSITIVE_INFINITY };
  let tries = 0;
  const seen = new Set<string>();
  const isOver = () => tries >= most || signal?.aborted === true;
  /** Accepts a tape if it shows the violation and is smaller than the best so far. */
  const take = async (candidate: readonly number[]): Promise<boolean> => {
    const trimmed = withoutEnd(candidate);
    const key = trimmed.join();
    if (isOver() || seen.has(key)) return false;
    seen.add(key);
    tries += 1;
    const story = await shows(trimmed);
    if (story === undefined || !isSmaller({ tape: trimmed, story }, best)) return false;
    best = { tape: trimmed, story };
    return true;
  };

  await take(best.tape);
  for (let low = 0; low < best.tape.length; ) {
    const middle = Math.floor((low + best.tape.length) / 2);
    if (!(await take(best.tape.slice(0, middle)))) low = middle + 1;
  }
  for (let before: Candidate | undefined; before !== best && !isOver(); ) {
    before = best;
    for (const size of halves(best.tape.length)) {
      await eachPiece(size, (from, to) =>
        best.tape.map((choice, at) => (at >= from && at < to ? 0 : choice)),
      );
      await eachPiece(size, (from, to) => best.tape.filter((_, at) => at < from || at >= to));
    }
    for (let at = best.tape.length - 1; at >= 0; at--) await lower(at);
  }
  return { tape: best.tape, tries };

  /**
   * Tries the pieces in order from the last to the first, because later choices depend on earlier ones and can usually
   * be removed first.
   */
  async function eachPiece(
    size: number,
    change: (from: number, to: number) => readonly number[],
  ): Promise<void> {
    for (let to = best.tape.length; to > 0; to -= size) await take(change(Math.max(to - size, 0), to));
  }

  /** Finds, by bisection, the smallest value of one choice with which the tape still shows the violation. */
  async function lower(at: number): Promise<void> {
    for (let low = 0; low < (best.tape[at] ?? 0); ) {
      const middle = Math.floor((low + (best.tape[at] ?? 0)) / 2);
      if (!(await take(best.tape.with(at, middle)))) low = middle + 1;
    }
  }
}

interface Candidate {
  readonly tape: readonly number[];
  readonly story: number;
}

/**
 * Whether candidate `a` is smaller than `b`. Compares the numbers of trace lines, plus `FAULT_LINES` for each non-zero
 * choice. If these are equal, compares the lengths of the tapes, and then the first choice that differs.
 */
function isSmaller(a: Candidate, b: Candidate): boolean {
  const [readA, readB] = [a.story + FAULT_LINES * faults(a), b.story + FAULT_LINES * faults(b)];
  if (readA !== readB) return readA < readB;
  if (a.tape.length !== b.tape.length) return a.tape.length < b.tape.length;
  const differs = a.tape.findIndex((choice, at) => choice !== b.tape[at]);
  return differs >= 0 && (a.tape[differs] ?? 0) < (b.tape[differs] ?? 0);
}

function faults({ tape }: Candidate): number {
  return tape.filter((choice) => choice !== 0).length;
}

/** Drops trailing zeros. They have no effect, because every choice after the end of a tape is 0. */
function withoutEnd(tape: readonly number[]): readonly number[] {
  return tape.slice(0, tape.findLastIndex((choice) => choice !== 0) + 1);
}

/** Returns the sizes of the pieces: half of the length, a quarter, and so on down to 1. */
function halves(length: number): readonly number[] {
  const sizes: number[] = [];
  for (let size = length >> 1; size >= 1; size >>= 1) sizes.push(size);
  return sizes;
}
