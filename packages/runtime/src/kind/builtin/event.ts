import { foreignKind } from '../kind.ts';
import type { KubeObject } from '../object.ts';

/** A Kubernetes event about an object, as shown by `kubectl describe` and `kubectl events`. */
export interface Event extends KubeObject {
  readonly eventTime: string;
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly action: string;
  readonly reason: string;
  readonly type: 'Normal' | 'Warning';
  readonly note?: string;
  readonly regarding: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace?: string;
    readonly name: string;
    readonly uid?: string;
  };
  readonly series?: { readonly count: number; readonly lastObservedTime: string };
}

export const Event = foreignKind<Event>({
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  scope: 'Namespaced',
});
