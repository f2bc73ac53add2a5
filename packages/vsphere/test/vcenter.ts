import { nodeWorld } from '@vmwright/core';
import type { Vcsim } from '@vmwright/testbed';
import { VcenterClient, type VcenterClientOptions } from '../src/index.ts';
import type { Inventory, InventoryChange } from '../src/inventory/inventory.ts';

/** Creates a client that trusts the certificate of a vcsim. */
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

/** Removes the faults, delays and HTTP statuses that an earlier test injected. */
export async function resetFaults({ control }: Vcsim): Promise<void> {
  await Promise.all([control.clearFaults(), control.clearDelays(), control.clearStatus()]);
}

/** Resolves with the next matching change. */
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
