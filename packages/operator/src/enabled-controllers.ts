import { type Client, type Logger, resourceOf } from '@vmwright/runtime';
import { REQUIRED_KINDS, unservedKinds } from './served-kinds.ts';
import { CONTROLLERS, type ControllerName, type DisabledController } from './settings/controllers.ts';
import type { Settings } from './settings/settings.ts';
import { SettingsError } from './settings/values.ts';

/**
 * Disables each controller for which a CustomResourceDefinition is not installed, and logs each disabled controller
 * once. CRDs that are installed later take effect after a restart. If no controller is left, the operator still answers
 * webhook requests.
 * @throws SettingsError if a controller that `--controllers` names cannot run
 */
export async function withoutUnserved(
  client: Pick<Client, 'raw'>,
  settings: Settings,
  log: Logger,
): Promise<Settings> {
  const disabled = [...settings.disabled];
  for (const name of CONTROLLERS) {
    if (disabled.some((each) => each.name === name)) continue;
    const unserved = await unservedKinds(client, REQUIRED_KINDS[name]);
    if (unserved.length > 0) disabled.push(withoutCrds(name, unserved.map(resourceOf)));
  }
  for (const { name, why, remedy } of disabled) {
    if (settings.named.has(name))
      throw new SettingsError(`the controller ${name} cannot run: ${why}; ${remedy}`);
    log.info({ controller: name, why, remedy }, 'Controller is off');
  }
  if (disabled.length === CONTROLLERS.length)
    log.warn({ remedy: 'follow one of the remedies above, then restart the operator' }, 'No controller runs');
  const runs = (name: ControllerName) => !disabled.some((each) => each.name === name);
  return {
    ...settings,
    disabled,
    cloud: runs('vm') ? settings.cloud : undefined,
    vsphere: runs('vmgroup') ? settings.vsphere : undefined,
    kubevirt: runs('kubevirt') ? settings.kubevirt : undefined,
    gpuinfo: runs('gpuinfo') ? settings.gpuinfo : undefined,
  };
}

function withoutCrds(name: ControllerName, resources: readonly string[]): DisabledController {
  const [noun, verb] = resources.length === 1 ? ['CRD', 'is'] : ['CRDs', 'are'];
  return {
    name,
    why: `the ${noun} ${resources.join(', ')} ${verb} not installed`,
    remedy: 'install the CRDs and restart the operator (`vmwright manifests` prints those of vmwright)',
  };
}

/** State of a controller in the response of `/status`. */
export interface ControllerState {
  readonly name: ControllerName;
  readonly state: 'on' | 'off';
  readonly why?: string;
  readonly remedy?: string;
}

/** Response of the operator's `/status`. */
export interface OperatorStatus {
  readonly version: string;
  readonly revision: string;
  readonly controllers: readonly ControllerState[];
}

export function controllerStates({ disabled }: Pick<Settings, 'disabled'>): readonly ControllerState[] {
  return CONTROLLERS.map((name) => {
    const off = disabled.find((each) => each.name === name);
    return off === undefined ? { name, state: 'on' } : { ...off, state: 'off' };
  });
}
