/** Maximum number of concurrent clones. */
export const LIMIT = 3;
export const CLONE_MS = 500;

/** Returns the minimum time in seconds for this many clones: `LIMIT` at a time, without pauses. */
export function floorOf(machines: number): number {
  return (Math.ceil(machines / LIMIT) * CLONE_MS) / 1000;
}
