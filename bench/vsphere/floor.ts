/** How many vCenter is kept busy with at a time. */
export const LIMIT = 3;
export const CLONE_MS = 500;

/** How long so many clones take at the least, in seconds, when not a moment is lost between them. */
export function floorOf(machines: number): number {
  return (Math.ceil(machines / LIMIT) * CLONE_MS) / 1000;
}
