import { CONTROLLERS, type ManifestOptions, type Manifests } from '@vmwright/operator';
import type { KubeObject } from '@vmwright/runtime';

/** Text of each generated file, by path from the root of the repository. */
export type GeneratedFiles = ReadonlyMap<string, string>;

/** Returns the operator's manifests for options other than the namespace. */
export type ObjectsOf = (options: Omit<ManifestOptions, 'namespace'>) => Manifests;

/** Returns the controller that a role or its binding belongs to; `operator` if it is needed whichever controllers run. */
export function partOf({ metadata: { name } }: KubeObject): string {
  return (
    CONTROLLERS.find((part) => new RegExp(`^vmwright-${part}(-own|-cluster)?$`).test(name)) ?? 'operator'
  );
}
