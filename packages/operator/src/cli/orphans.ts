import { jsonLogger, messageOf, nodeWorld, stopSignal, textLine } from '@vmwright/runtime';
import type { Command } from 'commander';
import { clusterAccess } from '../access.ts';
import { type Orphan, orphanTable, withOrphans } from '../orphans.ts';
import type { Flags } from '../settings/flags.ts';
import { loadSettings } from '../settings/settings.ts';
import { SettingsError } from '../settings/values.ts';
import { clusterOptions, isJson, isSet } from './options.ts';
import { printResult } from './output.ts';

/**
 * `vmwright orphans`: lists machines and folders that belong to no existing VM or VmGroup. With --delete --yes, deletes
 * them, except machines that are very young or that a user has taken over (`keptBecause`).
 */
export async function orphans(flags: Flags, command: Command): Promise<void> {
  const [isDeleting, isConfirmed] = [isSet(command, 'delete'), isSet(command, 'yes')];
  if (isConfirmed && !isDeleting)
    throw new SettingsError('--yes confirms --delete, but --delete is not given');
  const settings = await loadSettings(flags, process.env);
  if (settings.cloud === undefined && settings.vsphere === undefined)
    throw new SettingsError(
      'neither the cloud nor a vCenter is configured; set CLOUD_URL or VC_HOST, as for `vmwright run`',
    );
  const isText = (settings.logFormat ?? (process.stderr.isTTY ? 'text' : 'json')) === 'text';
  const log = jsonLogger({
    clock: nodeWorld,
    level: settings.logLevel,
    ...(isText && { format: textLine }),
  });
  const access = await clusterAccess(nodeWorld, clusterOptions(command));
  await withOrphans(nodeWorld, access, settings, log, stopSignal(), async (found) => {
    const deletable = found.filter(({ keptBecause }) => keptBecause === undefined);
    const removed = isDeleting && isConfirmed ? await removeAll(deletable) : [];
    const rows = found.map(({ remove: _, ...row }) => ({ ...row, isDeleted: removed.includes(row.id) }));
    printResult(isJson(command), rows, () => orphanTable(found, nodeWorld.now()));
    if (isDeleting && !isConfirmed && deletable.length > 0)
      console.error(
        `vmwright: nothing was deleted; repeat with --delete --yes to delete the orphans with an empty KEPT-BECAUSE (${deletable.length})`,
      );
  });
}

/** Deletes orphans one after the other, even if a deletion fails. @returns the ids of the deleted orphans */
async function removeAll(deletable: readonly Orphan[]): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const { id, what, remove } of deletable)
    try {
      if (await remove())
        removed.push(id); // prints nothing, because `remove` has logged an audit line
      else
        console.error(
          `did not delete ${what} (${id}): it is already gone, has an owner again, or a user took it over`,
        );
    } catch (error) {
      process.exitCode = 1;
      console.error(`vmwright: deleting ${what} (${id}) failed: ${messageOf(error)}; repeat the command`);
    }
  return removed;
}
