import { didYouMean } from './did-you-mean.ts';
import { parseList, SettingsError } from './values.ts';

/** Names of the controllers in `--controllers`. */
export const CONTROLLERS = ['vm', 'vmgroup', 'kubevirt', 'gpuinfo'] as const;

export type ControllerName = (typeof CONTROLLERS)[number];

/**
 * How `--controllers` selects a controller:
 * - `named`: the user asks for the controller, so it is an error if it cannot run
 * - `default`: the controller runs if it can
 * - `off`: the user excludes the controller
 */
export type Selection = 'named' | 'default' | 'off';

/** A controller that does not run. */
export interface DisabledController {
  readonly name: ControllerName;
  /** Cause, without a period: `CLOUD_URL is not set`. */
  readonly why: string;
  /** How to enable it: `set CLOUD_URL to …`. */
  readonly remedy: string;
}

/**
 * Parses a list such as `vm,vmgroup`, `*,-vm` or `-vm`, as kube-controller-manager does. A list with only exclusions
 * means all other controllers.
 * @param name name of the setting for messages
 * @throws SettingsError
 */
export function selectControllers(name: string, value: string): (controller: ControllerName) => Selection {
  const items = parseList(value) ?? [];
  if (items.length === 0)
    throw new SettingsError(
      `${name} is empty; it must be * or a list of these names: ${CONTROLLERS.join(', ')}`,
    );
  const unknown = items.find((item) => item !== '*' && !isController(item.replace(/^-/, '')));
  if (unknown !== undefined)
    throw new SettingsError(
      `${name} contains the unknown controller "${unknown}"${didYouMean(unknown, CONTROLLERS)}; use a comma-separated list of these names: ${CONTROLLERS.join(', ')}, or * for all; a leading - excludes a controller: *,-vm`,
    );
  const clash = items.find((item) => items.includes(`-${item}`));
  if (clash !== undefined)
    throw new SettingsError(`${name} names "${clash}" and "-${clash}"; remove one of them`);
  if (CONTROLLERS.every((controller) => items.includes(`-${controller}`)))
    throw new SettingsError(`${name} excludes all controllers; remove one of the exclusions`);
  const isAll = items.includes('*') || items.every((item) => item.startsWith('-'));
  return (controller) =>
    items.includes(controller) ? 'named' : items.includes(`-${controller}`) || !isAll ? 'off' : 'default';
}

function isController(name: string): name is ControllerName {
  return CONTROLLERS.some((known) => known === name);
}
