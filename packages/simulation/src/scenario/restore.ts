import type { Truth } from '../invariants/invariant.ts';

export const RESTORED = 'etcd was restored from a backup';

/** One history in so many. */
const RESTORES = 6;

/**
 * At some time a backup is made, and later restored: objects that were created in between are gone without having been
 * deleted, and all watches have to list again. Objects that were changed or deleted in between stay as they are, and
 * Leases, too: who leads is the subject of other scenarios.
 */
export function planRestore({ simulation, server, kind }: Truth, ms: number): void {
  const { choices, schedule, network, counts } = simulation;
  if (!choices.oneIn(RESTORES)) return;
  const backupMs = choices.pick(ms / 2);
  let backup: ReadonlySet<string> | undefined;
  schedule.after(backupMs, () => {
    backup = new Set([...server.objects(kind)].map(({ metadata }) => metadata.uid ?? ''));
  });
  schedule.after(backupMs + choices.pick(ms - backupMs), () => {
    if (!network.faulty || backup === undefined) return;
    const lost = server.restore(kind, backup);
    if (lost.length === 0) return;
    counts.add(RESTORED);
    simulation.note('world', `${RESTORED}: without ${lost.join(', ')}`);
  });
}
