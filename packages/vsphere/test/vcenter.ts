import { nodeWorld } from '@vmwright/core';
import type { Vcsim } from '@vmwright/testbed';
import { VcenterClient, type VcenterClientOptions } from '../src/index.ts';
import type { Inventory, InventoryChange } from '../src/inventory/inventory.ts';

/** A client of a simulated vCenter that trusts its certificate. */
export function clientOf(vcsim: Vcsim, options: Partial<VcenterClientOptions> = {}): VcenterClient {
  const { url: server, username, password, ca } = vcsim;
  return new VcenterClient({
    world: nodeWorld,
    server,
    credentials: () => ({ username, password }),
    tls: { ca },
    ...options,
  });
}

/** Takes back what a test before has told the simulator to do. */
export async function resetFaults({ control }: Vcsim): Promise<void> {
  await Promise.all([control.clearFaults(), control.clearDelays(), control.clearStatus()]);
}

/** Resolves with the next change that is such, or at once where the inventory is such already. */
export function waitForChange(
  inventory: Inventory,
  matches: (change: InventoryChange) => boolean,
): Promise<InventoryChange> {
  return new Promise((resolve) => {
    const stop = inventory.onChange((change) => {
      if (!matches(change)) return;
      stop();
      resolve(change);
    });
  });
}
