import type { Invariant } from '../invariants/invariant.ts';
import { objectOf } from '../invariants/machines.ts';
import type { Sent } from '../scenario/traffic.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { folderOwnerOf, foldersIn } from './external-resources.ts';
import { isDeleted } from './objects.ts';
import { methodOf } from './requests.ts';

/**
 * If a replica has read that a folder belongs to another existing group, it does not label the folder for its own
 * group. The replica cannot detect a label that is set after that read, because vCenter has no preconditions for
 * labels.
 */
export function groupFoldersStay(vcenter: Vcenter): Invariant {
  return {
    name: "another group's folder is not taken over",
    watch: (truth, violated) => {
      const { traffic } = truth;
      const reading = new WeakMap<Sent, string>();
      /** Owner that a sender found when it last read a folder, by sender and folder. */
      const read = new Map<string, string>();
      traffic.onArrival((sent) => {
        const folder = folderIn(sent, 'RetrievePropertiesEx');
        const found = foldersIn(vcenter).find(({ ref }) => ref.value === folder);
        if (found !== undefined) reading.set(sent, folderOwnerOf(vcenter, found) ?? '');
      });
      traffic.onEnd((sent) => {
        const owner = reading.get(sent);
        if (owner !== undefined && sent.outcome === 'answered')
          read.set(`${sent.sender} ${folderIn(sent, 'RetrievePropertiesEx')}`, owner);
      });
      traffic.onSend((sent) => {
        const folder = folderIn(sent, 'SetField');
        const owner = read.get(`${sent.sender} ${folder}`) ?? '';
        const theirs = owner === '' ? undefined : objectOf(truth, owner);
        const isTaken = theirs !== undefined && !isDeleted(theirs) && !sent.body?.includes(owner);
        if (isTaken && UID.test(sent.body ?? '')) violated(`${sent.sender} takes over ${folder} of ${owner}`);
      });
    },
  };
}

/** The operator does not remove a folder that a user created, even if it is empty and a group has used it. */
export function userFoldersStay(vcenter: Vcenter): Invariant {
  return {
    name: 'folders made by users are not removed',
    watch: (_, violated) => {
      const theirs = new Set<string>([...foldersIn(vcenter)].map(({ ref }) => ref.value));
      vcenter.folders.listen(({ id, name, what, cause }) => {
        if (what === 'made' && cause === 'somebody') theirs.add(id);
        if (what === 'removed' && cause === 'request' && theirs.has(id))
          violated(`${name} (${id}) is removed`);
      });
    },
  };
}

/** An empty folder that the operator created has an owner, so that the operator can remove the folder later. */
export function createdFoldersHaveOwners(vcenter: Vcenter): Invariant {
  const ours = new Set<string>();
  return {
    name: 'an empty folder that the operator created has an owner',
    watch: () =>
      vcenter.folders.listen(({ id, what, cause }) => {
        if (what === 'made' && cause === 'request') ours.add(id);
      }),
    healed: function* () {
      for (const folder of foldersIn(vcenter))
        if (ours.has(folder.ref.value) && folder.children.size === 0 && !folderOwnerOf(vcenter, folder))
          yield `${folder.name} (${folder.ref.value}) is empty and has no owner`;
    },
  };
}

/** Matches a SetField request that sets a group's UID. A request that removes the label contains no UID. */
const UID = /<value[^>]*>[^<]*[0-9a-f]{8}-[0-9a-f]{4}-/;

/** Returns the folder to which a request of this method refers. */
function folderIn(sent: Sent, method: string): string | undefined {
  return methodOf(sent) === method ? /type="Folder">([^<]+)</.exec(sent.body ?? '')?.[1] : undefined;
}
