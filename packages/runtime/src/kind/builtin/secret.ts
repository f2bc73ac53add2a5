import { foreignKind } from '../kind.ts';
import type { KubeObject } from '../object.ts';

/** A Secret (core/v1). */
export interface Secret extends KubeObject {
  /** Type of the Secret. Immutable. @default 'Opaque' */
  readonly type?: string;
  /** Values in base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export const Secret = foreignKind<Secret>({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  scope: 'Namespaced',
});
