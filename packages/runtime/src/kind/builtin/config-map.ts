import { foreignKind } from '../kind.ts';
import type { KubeObject } from '../object.ts';

/** A ConfigMap (core/v1). */
export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export const ConfigMap = foreignKind<ConfigMap>({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  scope: 'Namespaced',
});
