import { manifestYaml } from '@vmwright/runtime';
import type { Command } from 'commander';
import { manifests } from '../manifests.ts';
import { CONTROLLERS, selectControllers } from '../settings/controllers.ts';
import { parseList } from '../settings/values.ts';
import { textOption } from './options.ts';

/** `vmwright manifests`: prints what to apply before the operator starts. */
export async function printManifests(command: Command): Promise<void> {
  const { crds, rbac, webhooks, networkPolicies } = manifests({
    namespace: textOption(command, 'namespace') ?? 'vmwright-system',
    controllers: controllersOf(textOption(command, 'controllers')),
    namespaces: parseList(textOption(command, 'namespaces')),
    webhookUrl: textOption(command, 'webhookUrl'),
    injectCaFrom: textOption(command, 'injectCaFrom'),
    apiServers: parseList(textOption(command, 'apiServers')),
  });
  console.log(await manifestYaml([...crds, ...rbac, ...webhooks, ...networkPolicies]));
}

/** Returns the selected controllers; undefined for all. @throws SettingsError */
function controllersOf(value: string | undefined): ReadonlySet<string> | undefined {
  if (value === undefined) return undefined;
  const selectionOf = selectControllers('--controllers', value);
  return new Set(CONTROLLERS.filter((controller) => selectionOf(controller) !== 'off'));
}
