import { createHash } from 'node:crypto';
import type { FolderOwner } from '../vcenter/ownership.ts';
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

/** The cluster and the namespaces whose groups this operator manages. */
export interface OwnerScope {
  /** Id of the cluster in the ownership labels. */
  readonly cluster: string;
  /** @default all namespaces */
  readonly namespaces?: readonly string[] | undefined;
}

/**
 * Returns the name under which a group's folder is created. vCenter creates a folder without custom attributes, so at
 * first only this name shows the owner of the folder. The folder gets its final name once the owner is recorded.
 */
export function provisionalFolderName({ cluster, namespace, uid }: ProvisionalOwner): string {
  return `vmwright-${letters(cluster)}-${letters(namespace)}-${uid}`;
}

type ProvisionalOwner = Pick<FolderOwner, 'cluster' | 'namespace' | 'uid'>;

/**
 * Returns the owner that a provisional folder name identifies; undefined for other names, and for groups outside the
 * scope. The name contains only a hash of the namespace. So if the scope includes all namespaces, the namespace is
 * unknown, and empty in the result.
 */
export function provisionalOwnerFrom(
  name: string,
  { cluster, namespaces }: OwnerScope,
): FolderOwner | undefined {
  const [, clusterHash, namespaceHash, uid = ''] = /^vmwright-([a-z]+)-([a-z]+)-(.+)$/.exec(name) ?? [];
  if (clusterHash !== letters(cluster)) return undefined;
  const namespace =
    namespaces === undefined ? '' : namespaces.find((each) => letters(each) === namespaceHash);
  return namespace === undefined ? undefined : { cluster, namespace, uid, isOurs: true };
}

/**
 * Returns the name of the machine in a slot. The name depends only on the group and the slot. So a repeated clone
 * request has the same name, and vCenter rejects it, because names are unique within a folder.
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
