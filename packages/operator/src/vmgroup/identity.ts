import { createHash } from 'node:crypto';
import type { VmGroup } from './resource.ts';

/** vCenter's limit for names. */
const MAX_NAME_LENGTH = 80;
const HASH_LENGTH = 8;

interface Named {
  readonly metadata: Pick<VmGroup['metadata'], 'namespace' | 'name'>;
}

/** Returns the name of the folder that contains a group's machines: `<namespace>-<name>`. */
export function folderName({ metadata: { namespace = '', name } }: Named): string {
  return shortened(`${namespace}-${name}`, MAX_NAME_LENGTH);
}

/**
 * Returns the name of the machine in a slot. It depends only on the group and the slot, so that a repeated clone has the
 * same name and vCenter rejects it: names are unique within a folder.
 */
export function replicaName({ metadata: { name, uid = '' } }: VmGroup, slot: number): string {
  const suffix = `-replica-${letters(`${uid}/${slot}`)}`;
  return `${shortened(name, MAX_NAME_LENGTH - suffix.length)}${suffix}`;
}

/** Cuts a name that is too long and appends a hash of the whole name. */
function shortened(name: string, maxLength: number): string {
  if (name.length <= maxLength) return name;
  return `${name.slice(0, maxLength - HASH_LENGTH - 1)}-${letters(name)}`;
}

function letters(text: string): string {
  const digest = createHash('sha256').update(text).digest();
  let number = digest.readBigUInt64BE();
  let word = '';
  for (; word.length < HASH_LENGTH; number /= 26n) word += String.fromCharCode(97 + Number(number % 26n));
  return word;
}
