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

/** The same event in the core group, where some fields have other names. */
export interface CoreEvent
  extends KubeObject,
    Pick<Event, 'eventTime' | 'reportingInstance' | 'action' | 'reason' | 'type' | 'series'> {
  readonly reportingComponent: string;
  readonly source: { readonly component: string };
  readonly message?: string;
  readonly involvedObject: Event['regarding'];
}

export const CoreEvent = foreignKind<CoreEvent>({
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  scope: 'Namespaced',
});

export function toCoreEvent(event: Event): CoreEvent {
  const { note, regarding, reportingController, ...same } = event;
  return {
    ...same,
    reportingComponent: reportingController,
    source: { component: reportingController },
    ...(note !== undefined && { message: note }),
    involvedObject: regarding,
  };
}
