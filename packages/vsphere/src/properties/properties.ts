import { type BoundSession, cleanupOptions } from '../session/session-client.ts';
import type { ManagedObjectReference, Properties, Vim25 } from '../vim25/vim25.generated.ts';

export type ManagedType = keyof Properties;
export type Ref<T extends string = string> = ManagedObjectReference<T>;

/** A managed object of a known type. Properties that are unset, or that the user may not read, are missing. */
export interface TypedManagedObject<T extends ManagedType> {
  readonly ref: Ref<T>;
  readonly properties: Partial<Properties[T]>;
}

/** A managed object of any type; `isOfType` narrows it. */
export interface ManagedObject {
  readonly ref: Ref;
  readonly properties: Readonly<Record<string, unknown>>;
}

export function isOfType<T extends ManagedType>(
  object: ManagedObject,
  type: T,
): object is ManagedObject & TypedManagedObject<T> {
  return object.ref.type === type;
}

export function isRef<T extends string>(value: unknown, type: T): value is Ref<T> {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === type;
}

/** Reads the properties of all objects that a filter selects, page by page. */
export async function retrieve(
  bound: BoundSession,
  spec: Vim25['PropertyFilterSpec'],
  { pageSize }: { readonly pageSize?: number } = {},
): Promise<ManagedObject[]> {
  const collector = bound.login.content.propertyCollector;
  const options = pageSize === undefined ? {} : { maxObjects: pageSize };
  const found: ManagedObject[] = [];
  let page = await bound.call('RetrievePropertiesEx', collector, { specSet: [spec], options });
  while (page !== undefined) {
    // An empty page has no `objects`, although the schema requires it.
    for (const { obj, propSet } of page.objects ?? []) {
      const properties = Object.fromEntries((propSet ?? []).map(({ name, val }) => [name, val]));
      found.push({ ref: obj, properties });
    }
    const { token } = page;
    if (token === undefined) break;
    page = await bound.call('ContinueRetrievePropertiesEx', collector, { token });
  }
  return found;
}

/** Reads all objects of the given types below a container, through a temporary view. */
export async function retrieveBelow(
  bound: BoundSession,
  container: Ref,
  pathsByType: Readonly<Record<string, readonly string[]>>,
  options?: { readonly pageSize?: number },
): Promise<ManagedObject[]> {
  const { viewManager } = bound.login.content;
  if (viewManager === undefined) return [];
  const type = Object.keys(pathsByType);
  const view = await bound.call('CreateContainerView', viewManager, { container, type, recursive: true });
  try {
    return await retrieve(bound, viewSpec(view, pathsByType), options);
  } finally {
    // A view that is not destroyed exists as long as the session, which may last for months.
    await bound.call('DestroyView', view, {}, cleanupOptions()).catch(() => undefined);
  }
}

/** Returns a filter for the objects of a view. */
export function viewSpec(
  view: Ref,
  pathsByType: Readonly<Record<string, readonly string[]>>,
): Vim25['PropertyFilterSpec'] {
  return listSpec(view, 'view', pathsByType);
}

/** Either a single object, or the objects that are listed in one of its properties. */
export interface ObjectList {
  readonly owner: Ref;
  /** Property of the owner that lists the objects. @default the list contains only the owner */
  readonly path?: string;
}

/** Returns a filter for the objects that a property of `owner` lists. */
export function listSpec(
  owner: Ref,
  path: string,
  pathsByType: Readonly<Record<string, readonly string[]>>,
): Vim25['PropertyFilterSpec'] {
  return listsSpec([{ owner, path }], pathsByType);
}

/** Returns a filter for the objects of several lists. */
export function listsSpec(
  lists: readonly ObjectList[],
  pathsByType: Readonly<Record<string, readonly string[]>>,
): Vim25['PropertyFilterSpec'] {
  return {
    propSet: Object.entries(pathsByType).map(([type, pathSet]) => ({ type, pathSet })),
    objectSet: lists.map(({ owner: obj, path }) =>
      path === undefined ? { obj } : { obj, skip: true, selectSet: [traversal(obj.type, path)] },
    ),
  };
}

function traversal(type: string, path: string): Vim25['TraversalSpec'] {
  return { _type: 'TraversalSpec', type, path, skip: false };
}

/** Returns a filter for the given objects. */
export function objectSpec(refs: readonly Ref[], pathSet: readonly string[]): Vim25['PropertyFilterSpec'] {
  const types = [...new Set(refs.map(({ type }) => type))];
  return { propSet: types.map((type) => ({ type, pathSet })), objectSet: refs.map((obj) => ({ obj })) };
}
