import { fieldAt, same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Change } from '../apiserver/store.ts';
import type { Invariant, Truth } from './invariant.ts';

/** @param path of the identity: `['status', 'machineId']` */
export function identityNeverChanges(path: readonly string[]): Invariant {
  return {
    name: `${path.join('.')} never changes`,
    watch: (truth, violated) =>
      watchObjects(truth, (before, after) => {
        const was = fieldAt(before, path);
        const is = fieldAt(after, path);
        if (was !== undefined && was !== is) violated(`${nameOf(after)} had ${was} and has ${is}`);
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
        violated(`${nameOf(after)} had ${was} and has ${is}`);
    }),
};

/** @param secret a text that nobody may find but in a Secret */
export function noSecretOutsideSecrets(secret: string): Invariant {
  return {
    name: 'no secret outside a Secret',
    watch: ({ server }, violated) =>
      server.listen(({ resource, key, after }) => {
        if (resource.kind.kind !== 'Secret' && after?.text(false).includes(secret))
          violated(`it is in ${resource.kind.kind} ${key}`);
      }),
  };
}

/** While an object is wanted, what stands for it outside may be there, and only its finalizer keeps that from being lost. */
export function finalizerStaysWhileWanted(finalizer: string): Invariant {
  return {
    name: 'finalizer stays until deletion is requested',
    watch: (truth, violated) =>
      watchObjects(truth, (before, after) => {
        const { finalizers, deletionTimestamp } = after.metadata;
        if (deletionTimestamp !== undefined || finalizers?.includes(finalizer)) return;
        if (before.metadata.finalizers?.includes(finalizer)) violated(`${nameOf(after)} has lost it`);
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

/** @param problem what is not as it should be with an object; undefined where all is well */
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
 * Spec A → B → A ends where a fresh A ends: objects with the same spec are the same at rest, whatever way they came.
 * @param comparable what of an object has nothing to do with its past
 */
export function endsLikeAFreshOne(comparable: (object: StoredObject) => unknown): Invariant {
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

/** Each change of an object of the kind that stays the same object. */
function watchObjects(
  { server, kind }: Truth,
  tell: (before: StoredObject, after: StoredObject) => void,
): void {
  server.listen(({ resource, before, after }: Change) => {
    if (resource.kind.plural !== kind.plural || resource.kind.group !== kind.group) return;
    if (before !== undefined && after !== undefined) tell(before.object, after.object);
  });
}

function nameOf({ metadata: { name, uid } }: StoredObject): string {
  return `${name} (${uid})`;
}
