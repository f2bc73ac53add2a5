/**
 * Repeats a check until it is true. Has no delay of its own: the check must do network I/O, which yields to the event
 * loop.
 */
export async function until(isMet: () => Promise<boolean>): Promise<void> {
  while (!(await isMet()));
}
