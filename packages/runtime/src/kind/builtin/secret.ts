import { foreignKind } from '../kind.ts';
import type { KubeObject } from '../object.ts';

export interface Secret extends KubeObject {
  /** `Opaque` unless said otherwise; cannot be changed. */
  readonly type?: string;
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export const Secret = foreignKind<Secret>({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  scope: 'Namespaced',
});
