import type { Client } from '@vmwright/runtime';
import { kindsOf } from '../../declarations.ts';
import { unservedKinds } from '../../served-kinds.ts';
import { CONTROLLERS, type ControllerName } from '../../settings/controllers.ts';
import { needsBackend, type Settings } from '../../settings/settings.ts';

/**
 * Returns the enabled controllers for which the installation is checked:
 * - controllers that `--controllers` names
 * - controllers that are enabled because the address of their backend is set
 * - controllers that are enabled by default, if at least one of their own CRDs is installed
 *
 * If no enabled controller has an installed CRD, all enabled controllers are checked.
 */
export async function checkedControllers(
  client: Pick<Client, 'raw'>,
  { disabled, named }: Pick<Settings, 'disabled' | 'named'>,
  signal?: AbortSignal,
): Promise<ReadonlySet<ControllerName>> {
  const enabled = CONTROLLERS.filter((controller) => !disabled.some(({ name }) => name === controller));
  const installed: ControllerName[] = [];
  for (const controller of enabled) {
    const kinds = kindsOf(new Set([controller]));
    const unserved = await unservedKinds(client, kinds, signal);
    if (unserved.length < kinds.length) installed.push(controller);
  }
  const explicit = enabled.filter((controller) => named.has(controller) || needsBackend(controller));
  return new Set(installed.length === 0 ? enabled : [...explicit, ...installed]);
}
