import type { Condition } from '../src/conditions/conditions.ts';
import { foreignKind } from '../src/kind/kind.ts';
import type { KubeObject } from '../src/kind/object.ts';

export { ConfigMap } from '../src/kind/builtin/config-map.ts';

export interface Deployment extends KubeObject {
  readonly spec: { readonly replicas?: number; readonly selector: object; readonly template: object };
  readonly status?: {
    readonly replicas?: number;
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
  };
}

export const Deployment = foreignKind<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  scope: 'Namespaced',
});

export interface Pod extends KubeObject {
  readonly spec: {
    readonly schedulerName?: string;
    readonly containers: readonly { readonly name: string; readonly image: string }[];
  };
  readonly status?: { readonly phase?: string; readonly message?: string };
}

export const Pod = foreignKind<Pod>({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  scope: 'Namespaced',
});
