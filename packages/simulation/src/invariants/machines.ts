import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant, Truth } from './invariant.ts';

/** An object has at most one machine, no matter how often and by which replica the create request is sent. */
export const atMostOneMachine: Invariant = {
  name: 'at most one live machine per UID',
  watch: ({ external }, violated) =>
    external.listen(({ before, after }) => {
      const owner = after?.owner;
      if (before !== undefined || owner === undefined) return;
      const ids = [...external.all()].filter((each) => each.owner === owner).map(({ id }) => id);
      if (ids.length > 1) violated(`${owner} has ${ids.join(' and ')}`);
    }),
};

export const foreignMachinesUntouched: Invariant = {
  name: 'foreign machines are never touched',
  watch: ({ external }, violated) =>
    external.listen(({ before, after }) => {
      if (before !== undefined && before.owner === undefined)
        violated(`${before.id} is ${after === undefined || after.deleting ? 'deleted' : 'changed'}`);
    }),
};

/** While an object exists, its machine is deleted only if the object itself is being deleted. */
export const noWantedMachineDeleted: Invariant = {
  name: 'no wanted machine is deleted',
  watch: (truth, violated) =>
    truth.external.listen(({ before, after }) => {
      if (before?.owner === undefined || before.deleting || (after !== undefined && !after.deleting)) return;
      const object = objectOf(truth, before.owner);
      if (object !== undefined && object.metadata.deletionTimestamp === undefined)
        violated(`${before.id} of ${object.metadata.name} (${before.owner}) is deleted`);
    }),
};

export const nothingLeaked: Invariant = {
  name: 'no machine is leaked',
  healed: function* (truth) {
    for (const { id, owner } of truth.external.all())
      if (owner !== undefined && objectOf(truth, owner) === undefined)
        yield `${id} exists without its object ${owner}`;
  },
};

/** Returns the stored object with this UID. */
export function objectOf({ server, kind }: Truth, uid: string): StoredObject | undefined {
  for (const object of server.objects(kind)) if (object.metadata.uid === uid) return object;
  return undefined;
}
