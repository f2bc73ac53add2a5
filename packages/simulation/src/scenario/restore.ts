import type { Truth } from '../invariants/invariant.ts';

export const RESTORED = 'etcd was restored from a backup';

/** Probability of a restore: one run in 6. */
const RESTORE_ONE_IN = 6;

/**
 * Schedules a backup of etcd and a later restore. Objects that were created after the backup vanish without a DELETED
 * event, and all watches have to list again. For simplicity, objects that were changed or deleted after the backup keep
 * their current state. Leases also keep their current state, because other scenarios test leader election.
 */
export function planRestore({ simulation, server, kind }: Truth, ms: number): void {
  const { choices, schedule, network, counts } = simulation;
  if (!choices.oneIn(RESTORE_ONE_IN)) return;
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
