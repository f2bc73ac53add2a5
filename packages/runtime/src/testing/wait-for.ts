import { Deadline, nodeWorld, wait } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import { ApiError, ConnectionError, ForbiddenError } from '../client/errors.ts';
import { type Condition, conditionOf } from '../conditions/conditions.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import { type KubeObject, keyOf, type ObjectRef } from '../kind/object.ts';

export interface WaitOptions {
  /** Timeout in milliseconds. @default 30_000 */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Watches an object until the predicate returns true, and returns the object. The predicate gets undefined while the
 * object does not exist. Connection errors and API errors other than 403 are retried.
 * @throws ForbiddenError on 403
 * @throws Error after the timeout, with the last state of the object
 */
export async function waitFor<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  ref: ObjectRef,
  predicate: (object: T | undefined) => boolean,
  { timeoutMs = 30_000, signal }: WaitOptions = {},
): Promise<T | undefined> {
  const deadline = new Deadline(nodeWorld, timeoutMs, signal);
  let last: T | undefined;
  try {
    for await (const object of states(client, kind, ref, deadline.signal)) {
      last = object;
      if (predicate(object)) return object;
    }
  } catch (error) {
    if (!deadline.passed) throw error;
    const state = last === undefined ? 'it does not exist' : `its last state is ${JSON.stringify(last)}`;
    const subject = `${resourceOf(kind)} ${keyOf(ref)}`;
    throw new Error(`${subject} did not reach the expected state within ${timeoutMs / 1000} s: ${state}`, {
      cause: error,
    });
  } finally {
    deadline.end();
  }
  throw new Error('unreachable: states never end');
}

/** Waits until an object is deleted. */
export async function waitForGone(
  client: Client,
  kind: Kind,
  ref: ObjectRef,
  options: WaitOptions = {},
): Promise<void> {
  await waitFor(client, kind, ref, (object) => object === undefined, options);
}

/** Waits until an object has a condition with the given status, and returns the object. */
export async function waitForCondition<T extends KubeObject & Conditioned>(
  client: Client,
  kind: Kind<T>,
  ref: ObjectRef,
  type: string,
  status: Condition['status'] = 'True',
  options: WaitOptions = {},
): Promise<T> {
  const has = (object: T | undefined) => conditionOf(object?.status?.conditions, type)?.status === status;
  const object = await waitFor(client, kind, ref, has, options);
  if (object === undefined) throw new Error('unreachable: an object that does not exist has no conditions');
  return object;
}

interface Conditioned {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

async function* states<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  { namespace, name }: ObjectRef,
  signal: AbortSignal,
): AsyncGenerator<T | undefined, void, undefined> {
  const selection = { namespace, fieldSelector: `metadata.name=${name}`, signal };
  for (;;) {
    try {
      const { items, resourceVersion } = await client.list(kind, selection);
      yield items[0];
      for await (const event of client.watch(kind, { ...selection, resourceVersion })) {
        if (event.type !== 'BOOKMARK') yield event.type === 'DELETED' ? undefined : event.object;
      }
    } catch (error) {
      signal.throwIfAborted();
      // Tests may break the connection, or wait for a kind that the API server does not serve yet.
      if (!(error instanceof ApiError || error instanceof ConnectionError)) throw error;
      if (error instanceof ForbiddenError) throw error;
      await wait(nodeWorld, 100, signal);
    }
  }
}
