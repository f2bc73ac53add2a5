import type { Scenario } from '../scenario/scenario.ts';

/** A module that exports scenarios, like `registry.ts`. */
export interface Registry {
  readonly scenarios: readonly Scenario[];
  readonly unsound?: readonly Scenario[];
}

/** Returns the scenario with this name. @throws an error that lists all names if no scenario has this name */
export function scenarioNamed(name: string, { scenarios, unsound = [] }: Registry): Scenario {
  const all = [...scenarios, ...unsound];
  const found = all.find((scenario) => scenario.name === name);
  if (found !== undefined) return found;
  throw new Error(`scenario "${name}" does not exist; available: ${all.map((each) => each.name).join(', ')}`);
}

export function isRegistry(module: unknown): module is Registry {
  return (
    typeof module === 'object' && module !== null && 'scenarios' in module && Array.isArray(module.scenarios)
  );
}
