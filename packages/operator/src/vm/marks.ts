import type { Labels, Server } from '@vmwright/cloud';
import type { VM } from './resource.ts';

const CLUSTER = 'vmwright.dev/cluster';
export const OWNER = 'vmwright.dev/uid';
const NAMESPACE = 'vmwright.dev/namespace';
const NAME = 'vmwright.dev/name';

/** What a server of ours carries, so that we know it again whatever was lost. */
export function marksOf(cluster: string, { metadata }: VM): Labels {
  const { uid = '', namespace = '', name } = metadata;
  return { [CLUSTER]: cluster, [OWNER]: uid, [NAMESPACE]: namespace, [NAME]: name };
}

/** By which all of a cluster's are found. */
export function marksOfAll(cluster: string): Labels {
  return { [CLUSTER]: cluster };
}

/** By which those of one object are found, also under the name that its cluster had before. */
export function marksOfOne(uid: string): Labels {
  return { [OWNER]: uid };
}

/** The marks taken off. */
export const NO_MARKS: Readonly<Record<string, null>> = {
  [CLUSTER]: null,
  [OWNER]: null,
  [NAMESPACE]: null,
  [NAME]: null,
};

/**
 * What to set on a server whose marks are not as wanted: the cluster is called otherwise now, say, and lists do not show
 * it as ours. Never the owner: a server without one was let go of, and a request that comes late must not make it ours
 * again, for the sweeper to find it without an object.
 */
export function marksToMend({ labels }: Server, wanted: Labels): Labels | undefined {
  if (labels[OWNER] !== wanted[OWNER]) return undefined;
  const { [OWNER]: _, ...others } = wanted;
  return Object.entries(others).every(([key, value]) => labels[key] === value) ? undefined : others;
}

/** The UID of the object that it was made for. */
export function ownerOf({ labels }: Server): string | undefined {
  return labels[OWNER];
}

/** One whose mark is gone was let go of, or is another's: it is looked at, and nothing more. */
export function isOwnedBy({ metadata }: VM, server: Server): boolean {
  return ownerOf(server) === metadata.uid;
}

/** The VM of this cluster that a server was created for; undefined where it is not of this cluster. */
export function holderOf(
  { labels }: Server,
  cluster: string,
): { readonly namespace: string; readonly name: string } | undefined {
  if (labels[CLUSTER] !== cluster || labels[OWNER] === undefined) return undefined;
  return { namespace: labels[NAMESPACE] ?? '', name: labels[NAME] ?? '' };
}

export function namespaceOf({ labels }: Server): string {
  return labels[NAMESPACE] ?? '';
}

export function nameOf({ labels }: Server): string {
  return labels[NAME] ?? '';
}

/**
 * What makes a create one server however often it is sent: fixed by the object before the first sending. A machine that
 * is lost and made anew is another one, and so needs another key.
 */
export function keyFor({ metadata, status }: VM): string {
  const { uid = '' } = metadata;
  const { recreations = 0 } = status ?? {};
  return recreations === 0 ? uid : `${uid}.${recreations}`;
}
