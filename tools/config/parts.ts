import { CONTROLLERS, type ManifestOptions, type Manifests } from '@vmwright/operator';
import type { KubeObject } from '@vmwright/runtime';

/** Text of each generated file, by path from the root of the repository. */
export type GeneratedFiles = ReadonlyMap<string, string>;

/** Returns the operator's manifests for these options. The implementation chooses the namespace. */
export type ObjectsOf = (options: Omit<ManifestOptions, 'namespace'>) => Manifests;

/**
 * Returns the controller to which a role or its binding belongs; `operator` if the role is needed for all controllers.
 */
export function partOf({ metadata: { name } }: KubeObject): string {
  return (
    CONTROLLERS.find((part) => new RegExp(`^vmwright-${part}(-own|-cluster)?$`).test(name)) ?? 'operator'
  );
}
