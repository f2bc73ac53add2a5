import type { Invariant } from '../invariants/invariant.ts';
import { objectOf } from '../invariants/machines.ts';
import type { Sent } from '../scenario/traffic.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { isDeleted } from './objects.ts';
import { folderOwnerOf, foldersIn } from './outside.ts';
import { methodOf } from './requests.ts';

/**
 * Who marks a folder as a group's has not read there that it is another's, which lives. What was marked since he has
 * read it he cannot know: vCenter compares nothing.
 */
export function foldersAreRespected(vcenter: Vcenter): Invariant {
  return {
    name: "another group's folder is not taken over",
    watch: (truth, violated) => {
      const { traffic } = truth;
      const reading = new WeakMap<Sent, string>();
      /** By who has read it, and the folder: whose it was then. */
      const read = new Map<string, string>();
      traffic.onLand((sent) => {
        const folder = folderIn(sent, 'RetrievePropertiesEx');
        const found = foldersIn(vcenter).find(({ ref }) => ref.value === folder);
        if (found !== undefined) reading.set(sent, folderOwnerOf(vcenter, found) ?? '');
      });
      traffic.onEnd((sent) => {
        const owner = reading.get(sent);
        if (owner !== undefined && sent.seen === 'an answer')
          read.set(`${sent.sender} ${folderIn(sent, 'RetrievePropertiesEx')}`, owner);
      });
      traffic.onSend((sent) => {
        const folder = folderIn(sent, 'SetField');
        const owner = read.get(`${sent.sender} ${folder}`) ?? '';
        const theirs = owner === '' ? undefined : objectOf(truth, owner);
        const isTaken = theirs !== undefined && !isDeleted(theirs) && !sent.body?.includes(owner);
        if (isTaken && UID.test(sent.body ?? ''))
          violated(`${sent.sender} takes ${folder} away from ${owner}`);
      });
    },
  };
}

/** A folder that people have made is theirs, also where it is empty and a group has used it. */
export function foldersOfPeopleStay(vcenter: Vcenter): Invariant {
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

/** A mark that is taken off has none. */
const UID = /<value[^>]*>[^<]*[0-9a-f]{8}-[0-9a-f]{4}-/;

/** The folder that a call of this method is about. */
function folderIn(sent: Sent, method: string): string | undefined {
  return methodOf(sent) === method ? /type="Folder">([^<]+)</.exec(sent.body ?? '')?.[1] : undefined;
}
