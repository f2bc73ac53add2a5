import { Deadline, nodeWorld, wait } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import { ApiError, ConnectionError, ForbiddenError } from '../client/errors.ts';
import { type Condition, conditionOf } from '../conditions/conditions.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import { type KubeObject, keyOf, type ObjectRef } from '../kind/object.ts';

export interface WaitOptions {
  /** @default 30_000 */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Follows an object by a watch, through all that may break, until it is as wanted; undefined while there is none. */
export async function waitFor<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  ref: ObjectRef,
  wanted: (object: T | undefined) => boolean,
  { timeoutMs = 30_000, signal }: WaitOptions = {},
): Promise<T | undefined> {
  const deadline = new Deadline(nodeWorld, timeoutMs, signal);
  let last: T | undefined;
  try {
    for await (const object of states(client, kind, ref, deadline.signal)) {
      last = object;
      if (wanted(object)) return object;
    }
  } catch (error) {
    if (!deadline.passed) throw error;
    const state = last === undefined ? 'there is none' : `it was last ${JSON.stringify(last)}`;
    const what = `${resourceOf(kind)} ${keyOf(ref)}`;
    throw new Error(`${what} is not as wanted after ${timeoutMs / 1000} s: ${state}`, { cause: error });
  } finally {
    deadline.end();
  }
  throw new Error('unreachable: states never end');
}

export async function waitForGone(
  client: Client,
  kind: Kind,
  ref: ObjectRef,
  options: WaitOptions = {},
): Promise<void> {
  await waitFor(client, kind, ref, (object) => object === undefined, options);
}

/** @returns the object that has the condition */
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
  if (object === undefined) throw new Error('unreachable: an object that is not there has no conditions');
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
      // A test may well break the connection, or wait for a kind that is not served yet.
      if (!(error instanceof ApiError || error instanceof ConnectionError)) throw error;
      if (error instanceof ForbiddenError) throw error;
      await wait(nodeWorld, 100, signal);
    }
  }
}
