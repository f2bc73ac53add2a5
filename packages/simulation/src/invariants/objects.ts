import { fieldAt, same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Change } from '../apiserver/store.ts';
import type { Invariant, Truth } from './invariant.ts';

/** @param path path of the identity field, such as `['status', 'machineId']` */
export function identityNeverChanges(path: readonly string[]): Invariant {
  return {
    name: `${path.join('.')} never changes`,
    watch: (truth, violated) =>
      watchObjects(truth, (before, after) => {
        const was = fieldAt(before, path);
        const is = fieldAt(after, path);
        if (was !== undefined && was !== is)
          violated(`${path.join('.')} of ${nameOf(after)} changed from ${was} to ${is}`);
      }),
  };
}

export const observedGenerationNeverGoesBack: Invariant = {
  name: 'observedGeneration never goes back',
  watch: (truth, violated) =>
    watchObjects(truth, (before, after) => {
      const was = fieldAt(before, ['status', 'observedGeneration']);
      const is = fieldAt(after, ['status', 'observedGeneration']);
      if (typeof was === 'number' && !(typeof is === 'number' && is >= was))
        violated(`observedGeneration of ${nameOf(after)} changed from ${was} to ${is}`);
    }),
};

/** @param secret text that must not occur in any object other than a Secret */
export function noSecretOutsideSecrets(secret: string): Invariant {
  return {
    name: 'no secret outside a Secret',
    watch: ({ server }, violated) =>
      server.listen(({ resource, key, after }) => {
        if (resource.kind.kind !== 'Secret' && after?.text(false).includes(secret))
          violated(`${resource.kind.kind} ${key} contains the secret`);
      }),
  };
}

/**
 * An object keeps its finalizer until its deletion is requested. Without the finalizer, its external resources could
 * leak.
 */
export function finalizerStaysWhileWanted(finalizer: string): Invariant {
  return {
    name: 'finalizer stays until deletion is requested',
    watch: (truth, violated) =>
      watchObjects(truth, (before, after) => {
        const { finalizers, deletionTimestamp } = after.metadata;
        if (deletionTimestamp !== undefined || finalizers?.includes(finalizer)) return;
        if (before.metadata.finalizers?.includes(finalizer))
          violated(`${nameOf(after)} has lost its finalizer`);
      }),
  };
}

export const noStuckFinalizer: Invariant = {
  name: 'no finalizer is stuck',
  healed: function* ({ server, kind }) {
    for (const object of server.objects(kind))
      if (object.metadata.deletionTimestamp !== undefined)
        yield `${nameOf(object)} is held by ${object.metadata.finalizers?.join(', ')}`;
  },
};

/** @param problem returns why an object has not converged; undefined if it has */
export function converged(problem: (object: StoredObject, truth: Truth) => string | undefined): Invariant {
  return {
    name: 'converged',
    healed: function* (truth) {
      for (const object of truth.server.objects(truth.kind)) {
        const found = problem(object, truth);
        if (found !== undefined) yield `${nameOf(object)}: ${found}`;
      }
    },
  };
}

/**
 * Objects with the same spec end in the same state, regardless of their history: an object with the spec A → B → A ends
 * like a new object with the spec A.
 * @param comparable returns the part of an object that must not depend on its history
 */
export function sameEndState(comparable: (object: StoredObject) => unknown): Invariant {
  return {
    name: 'objects with the same spec end in the same state',
    healed: function* ({ server, kind }) {
      const seen: StoredObject[] = [];
      for (const object of server.objects(kind)) {
        const twin = seen.find(({ spec }) => same(spec, object.spec));
        if (twin === undefined) seen.push(object);
        else if (!same(comparable(twin), comparable(object)))
          yield `${nameOf(object)} is ${JSON.stringify(comparable(object))}, ${nameOf(twin)} is ${JSON.stringify(comparable(twin))}`;
      }
    },
  };
}

/** Calls the listener for each update of an object of the kind. */
function watchObjects(
  { server, kind }: Truth,
  listener: (before: StoredObject, after: StoredObject) => void,
): void {
  server.listen(({ resource, before, after }: Change) => {
    if (resource.kind.plural !== kind.plural || resource.kind.group !== kind.group) return;
    if (before !== undefined && after !== undefined) listener(before.object, after.object);
  });
}

function nameOf({ metadata: { name, uid } }: StoredObject): string {
  return `${name} (${uid})`;
}
