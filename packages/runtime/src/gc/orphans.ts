import type { Client } from '../client/client.ts';
import { ForbiddenError } from '../client/errors.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { ExternalResources } from './external-resources.ts';

/** Input of `findOrphans`. */
export interface FindOrphansOptions<T> {
  readonly client: Pick<Client, 'pages'>;
  readonly kind: Kind;
  readonly external: Pick<ExternalResources<T>, 'list' | 'ownerOf'>;
  /** Namespaces that the program watches. Resources with an owner in another namespace are skipped. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * UIDs of objects known to exist. If the owner of every resource is among them, no objects are listed. @default none
   */
  readonly known?: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

/** Result of `findOrphans`. */
export interface FoundOrphans<T> {
  /** External resources with an owner that does not exist. */
  readonly orphans: readonly T[];
  /**
   * Namespaces in which the API server forbids listing the objects. External resources with an owner there are not in
   * `orphans`.
   */
  readonly forbidden: readonly string[];
  /**
   * Returns whether a resource, after it was read again, still has no owner among the objects that `findOrphans`
   * listed.
   */
  readonly isOrphan: (item: T) => boolean;
}

/**
 * Finds external resources without an owner.
 *
 * The backend is listed first. The objects are listed afterwards, from the API server and not from a cache. An external
 * resource is requested only after its owner was stored, and UIDs are never reused. So an owner that is missing from
 * the list of objects no longer exists.
 */
export async function findOrphans<T>(options: FindOrphansOptions<T>): Promise<FoundOrphans<T>> {
  const { client, kind, external, namespaces, known = new Set(), signal } = options;
  const all = await external.list(signal);
  const suspects = withoutOwner(external, all, known, namespaces);
  const uids = new Set<string>();
  const forbidden = new Set<string>();
  if (suspects.length > 0)
    for (const namespace of namespaces ?? [undefined]) {
      const listed = await uidsIn(client, kind, namespace, signal);
      if (listed === 'forbidden') forbidden.add(namespace ?? '');
      else for (const uid of listed) uids.add(uid);
    }
  const judged = namespaces?.filter((namespace) => !forbidden.has(namespace));
  const orphansAmong = (items: readonly T[]) => withoutOwner(external, items, uids, judged);
  return {
    orphans: orphansAmong(suspects),
    forbidden: [...forbidden],
    isOrphan: (item) => orphansAmong([item]).length > 0,
  };
}

/**
 * Returns the items with an unknown owner: its UID is not among `uids`, and its namespace is among `namespaces`. Skips
 * items without ownership labels.
 */
export function withoutOwner<T>(
  { ownerOf }: Pick<ExternalResources<T>, 'ownerOf'>,
  items: readonly T[],
  uids: ReadonlySet<string>,
  namespaces?: readonly string[],
): readonly T[] {
  return items.filter((item) => {
    const owner = ownerOf(item);
    const isOurs = owner !== undefined && (namespaces?.includes(owner.namespace) ?? true);
    return isOurs && !uids.has(owner.uid);
  });
}

export function* uidsOf(objects: Iterable<KubeObject>): Generator<string, void, undefined> {
  for (const { metadata } of objects) yield metadata.uid ?? '';
}

/**
 * Lists the UIDs of all objects in one namespace or, if `namespace` is undefined, in the cluster.
 * @returns 'forbidden' if the API server forbids the list in the namespace
 * @throws ForbiddenError if the API server forbids the list in the cluster
 */
async function uidsIn(
  client: Pick<Client, 'pages'>,
  kind: Kind,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<readonly string[] | 'forbidden'> {
  const uids: string[] = [];
  try {
    for await (const { items } of client.pages(kind, { namespace, metadataOnly: true, signal }))
      uids.push(...uidsOf(items));
    return uids;
  } catch (error) {
    if (namespace === undefined || !(error instanceof ForbiddenError)) throw error;
    return 'forbidden';
  }
}
