/** Looks until it is so. What is looked at is asked over the network, so nothing is starved meanwhile. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo()));
}
