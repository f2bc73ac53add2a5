/** Repeats a check until it is true. The check does network I/O, so the event loop is not blocked. */
export async function until(isMet: () => Promise<boolean>): Promise<void> {
  while (!(await isMet()));
}
