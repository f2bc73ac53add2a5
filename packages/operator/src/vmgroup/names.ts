import { createHash } from 'node:crypto';
import type { VmGroup } from './resource.ts';

/** vCenter takes no longer ones. */
const LONGEST = 80;
const LETTERS = 8;

/** How a group is called. */
interface Grouped {
  readonly metadata: Pick<VmGroup['metadata'], 'namespace' | 'name'>;
}

/** Of the folder that a group's machines are in. */
export function folderName({ metadata: { namespace = '', name } }: Grouped): string {
  return shortened(`${namespace}-${name}`, LONGEST);
}

/**
 * Of a machine of a group. It is fixed by the group and the slot, since it is what keeps a machine from being made
 * twice: a folder has no name twice, so the second of two requests for one slot is refused by vCenter.
 */
export function replicaName({ metadata: { name, uid = '' } }: VmGroup, slot: number): string {
  const suffix = `-replica-${letters(`${uid}/${slot}`)}`;
  return `${shortened(name, LONGEST - suffix.length)}${suffix}`;
}

/** By which vCenter and we know a machine: a name-based UUID (version 5). */
export function instanceUuid(uid: string, slot: number): string {
  const bytes = createHash('sha1').update(`vmwright.dev/vmgroup/${uid}/${slot}`).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** As long as it may be; what is cut off is told apart from others by a hash of the whole. */
function shortened(name: string, longest: number): string {
  if (name.length <= longest) return name;
  return `${name.slice(0, longest - LETTERS - 1)}-${letters(name)}`;
}

function letters(text: string): string {
  const digest = createHash('sha256').update(text).digest();
  let number = digest.readBigUInt64BE();
  let word = '';
  for (; word.length < LETTERS; number /= 26n) word += String.fromCharCode(97 + Number(number % 26n));
  return word;
}
