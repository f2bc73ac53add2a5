import { fieldAt, isJson, type Json } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Truth } from '../invariants/invariant.ts';
import { isOf, textAt } from '../scenario/stored-objects.ts';
import type { Sent } from '../scenario/traffic.ts';

type AnyKind = Parameters<typeof isOf>[1];

/** Calls the listener when the operator deletes an object, with the object before the deletion. */
export function onOperatorDelete(
  truth: Truth,
  kind: AnyKind,
  listener: (object: StoredObject, sent: Sent) => void,
): void {
  listenToDeletes(truth, (resource) => isOf(resource, kind), listener);
}

/** Calls the listener with the UID of each object that the operator deletes. */
export function onAnyOperatorDelete(truth: Truth, listener: (uid: string) => void): void {
  listenToDeletes(
    truth,
    () => true,
    ({ metadata: { uid = '' } }) => listener(uid),
  );
}

function listenToDeletes(
  { server, traffic }: Truth,
  isMatching: (resource: Parameters<typeof isOf>[0]) => boolean,
  listener: (object: StoredObject, sent: Sent) => void,
): void {
  server.listen(({ resource, before, after }) => {
    const { arriving } = traffic;
    if (arriving === undefined || arriving.method !== 'DELETE') return;
    if (before === undefined || !isMatching(resource)) return;
    const isNew = before.object.metadata.deletionTimestamp === undefined;
    if (isNew && (after === undefined || after.object.metadata.deletionTimestamp !== undefined))
      listener(before.object, arriving);
  });
}

/** Calls the listener when the operator creates an object. */
export function onOperatorCreate(
  { server, traffic }: Truth,
  kind: AnyKind,
  listener: (object: StoredObject, sent: Sent) => void,
): void {
  server.listen(({ resource, before, after }) => {
    const { arriving } = traffic;
    if (arriving === undefined || before !== undefined || after === undefined) return;
    if (isOf(resource, kind)) listener(after.object, arriving);
  });
}

/**
 * Calls the listener when the operator sends a request that creates an object of a kind or changes the spec of such an
 * object. The listener gets the body of the request.
 */
export function onOperatorSend(
  { traffic }: Truth,
  { plural }: AnyKind,
  listener: (body: Json, sent: Sent) => void,
): void {
  traffic.onSend((sent) => {
    const [path = ''] = sent.path.split('?');
    if (sent.origin !== API_SERVER || sent.method === 'DELETE' || sent.body === undefined) return;
    if (!path.includes(`/${plural}`) || path.endsWith('/status')) return;
    const body: unknown = JSON.parse(sent.body);
    if (isJson(body) && body.spec !== undefined) listener(body, sent);
  });
}

/** Returns the UID in the first owner reference in the body of a request. */
export function controllerIn(body: Json): string | undefined {
  const references = fieldAt(body, ['metadata', 'ownerReferences']);
  return textAt(Array.isArray(references) ? references[0] : undefined, 'uid');
}

/** Returns the UID in the precondition of a delete request. */
export function requiredUid({ body = '{}' }: Sent): string | undefined {
  return textAt(JSON.parse(body), 'preconditions', 'uid');
}

/** Records the times at which each sender listed all VirtualMachines from etcd. */
export class LiveLists {
  readonly #times = new Map<string, number[]>();

  constructor({ traffic, simulation: { schedule } }: Truth) {
    traffic.onRead(({ sender, path }) => {
      const [resource, query = ''] = path.split('?');
      if (resource !== '/apis/pelotech.ot/v1alpha1/virtualmachines') return;
      if (query.includes('watch=') || query.includes('resourceVersion=')) return;
      const times = this.#times.get(sender) ?? [];
      this.#times.set(sender, times);
      times.push(schedule.now);
    });
  }

  /** Returns the time of a sender's first list request at or after `ms`; undefined if it sent none. */
  firstAfter(sender: string, ms: number): number | undefined {
    return this.#times.get(sender)?.find((at) => at >= ms);
  }
}
