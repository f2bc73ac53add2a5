/** Looks until it is so. What is looked at is asked over the network, so nothing is starved meanwhile. */
export async function until(isMet: () => Promise<boolean>): Promise<void> {
  while (!(await isMet()));
}
