import {
  type Client,
  ForbiddenError,
  type JobOptions,
  type Kind,
  type KubeObject,
  type Registry,
  type World,
} from '@vmwright/runtime';

/** What is outside, and may have been made for objects that are gone. */
export interface Outside<T> {
  /** All that carry our mark. */
  list(signal: AbortSignal): Promise<readonly T[]>;
  idOf(item: T): string;
  /** The object that it was made for; undefined where it is not ours, or is going already. */
  ownerOf(item: T): { readonly uid: string; readonly namespace: string } | undefined;
  /** It as it is now; undefined where it is gone. */
  again(item: T, signal: AbortSignal): Promise<T | undefined>;
  /** @param allow to be called right before anything is changed */
  remove(item: T, options: { readonly signal: AbortSignal; readonly allow: () => void }): Promise<void>;
}

export interface SweepOptions<T> {
  /** Of the metrics and of the job: `vm`. */
  readonly name: string;
  readonly kind: Kind;
  readonly outside: Outside<T>;
  readonly world: Pick<World, 'monotonic'>;
  readonly everyMs: number;
  /** For how long something must have been nobody's. */
  readonly graceMs: number;
  /** Those we look at: of what is in others we know nothing. @default all */
  readonly namespaces?: readonly string[] | undefined;
  readonly registry: Registry;
}

/**
 * So many at once are not what was created late, but a cluster that has forgotten: restored from a backup, or built anew
 * under its old name. What is there is somebody's.
 */
const SUSPICIOUSLY_MANY = 10;

/**
 * Removes what was made for an object that is gone: a request to make something can get there after the object's
 * deletion, when nobody waits for it any more.
 *
 * The outside is listed first and then the objects, afresh: something is asked for after its object was stored, and UIDs
 * do not come back, so whose object is not there then is nobody's, for good. Of several namespaces, what was made for
 * objects in one that may not be listed is left alone: of those nobody can say that they are gone.
 */
export function sweep<T>(options: SweepOptions<T>): JobOptions {
  const { name, kind, outside, world, everyMs, graceMs, namespaces, registry } = options;
  const orphans = registry
    .gauge({
      name: `vmwright_${name}_orphans`,
      help: `What carries our mark and belongs to no ${kind.kind}, as last seen.`,
    })
    .with({});
  const swept = registry
    .counter({
      name: `vmwright_${name}_swept_total`,
      help: `What belonged to no ${kind.kind} and was removed.`,
    })
    .with({});
  /** Since when each was nobody's, by its id. */
  let since = new Map<string, number>();
  let toldOf = '';
  return {
    name: `${name}-sweeper`,
    everyMs,
    reads: [kind],
    run: async ({ client, cache, signal, log, assertMayAct: allow }) => {
      const all = await outside.list(signal);
      // The cache knows most owners, and so spares a list. It never decides: it may lack an object that is there.
      const suspects = strangers(outside, all, new Set(uidsOf(cache(kind).list())), namespaces);
      const uids = new Set<string>();
      const forbidden = new Set<string>();
      if (suspects.length > 0)
        for (const namespace of namespaces ?? [undefined]) {
          const listed = await uidsIn(client, kind, namespace, signal);
          if (listed === 'forbidden') forbidden.add(namespace ?? '');
          else for (const uid of listed) uids.add(uid);
        }
      const unseen = [...forbidden].join(', ');
      if (unseen !== '' && unseen !== toldOf)
        log.warn(
          { namespaces: unseen },
          `no ${kind.kind} may be listed in these namespaces; what was made for those in them is not swept. This is told once`,
        );
      toldOf = unseen;
      const judged = namespaces?.filter((namespace) => !forbidden.has(namespace));
      const strangersAmong = (items: readonly T[]) => strangers(outside, items, uids, judged);
      const found = strangersAmong(suspects);
      orphans.set(found.length);
      const now = world.monotonic();
      since = new Map(found.map((item) => [outside.idOf(item), since.get(outside.idOf(item)) ?? now]));
      const due = found.filter((item) => now - (since.get(outside.idOf(item)) ?? now) >= graceMs);
      const those = all.filter((item) => !forbidden.has(outside.ownerOf(item)?.namespace ?? '')).length;
      if (due.length > SUSPICIOUSLY_MANY && due.length > those / 2) {
        log.error(
          { orphans: due.length, all: those },
          `most of what is there belongs to no ${kind.kind}; none is removed, for this cluster may have been restored or built anew. What nobody wants is to be deleted by hand`,
        );
        return;
      }
      for (const item of due) {
        const id = outside.idOf(item);
        try {
          // As it is now: since it was listed it may have been let go of (Orphan), and its object with it.
          const newest = await outside.again(item, signal);
          if (newest === undefined || strangersAmong([newest]).length === 0) continue;
          log.warn({ id }, `what belongs to no ${kind.kind} is removed`);
          await outside.remove(newest, { signal, allow });
          swept.inc();
        } catch (error) {
          signal.throwIfAborted();
          allow(); // who may not act any more has nothing to go on with
          // One that cannot be removed keeps none of the others.
          log.error(
            { id, error: String(error) },
            `what belongs to no ${kind.kind} could not be removed; it is tried again`,
          );
        }
      }
    },
  };
}

/** Of all objects of a kind, afresh. Not to be allowed to list all namespaces at once is a failure. */
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

/** What is ours, in namespaces of ours, and belongs to none of these objects. */
export function strangers<T>(
  { ownerOf }: Pick<Outside<T>, 'ownerOf'>,
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

function* uidsOf(objects: Iterable<KubeObject>): Generator<string, void, undefined> {
  for (const { metadata } of objects) yield metadata.uid ?? '';
}
