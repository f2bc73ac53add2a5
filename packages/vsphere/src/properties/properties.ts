import { type Bound, regardless } from '../calls/calls.ts';
import type { ManagedObjectReference, Properties, Vim25 } from '../vim25/vim25.generated.ts';

export type ManagedType = keyof Properties;
export type Ref<T extends string = string> = ManagedObjectReference<T>;

/** What was read of an object: a property that is unset, or that the user may not see, is not there. */
export interface Known<T extends ManagedType> {
  readonly ref: Ref<T>;
  readonly properties: Partial<Properties[T]>;
}

/** Of one object, before it is known to be of a type. */
export interface KnownObject {
  readonly ref: Ref;
  readonly properties: Readonly<Record<string, unknown>>;
}

export function isKnown<T extends ManagedType>(
  object: KnownObject,
  type: T,
): object is KnownObject & Known<T> {
  return object.ref.type === type;
}

export function isRef<T extends string>(value: unknown, type: T): value is Ref<T> {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === type;
}

/** What objects have, of those that a filter selects, page by page. */
export async function retrieve(
  bound: Bound,
  spec: Vim25['PropertyFilterSpec'],
  { pageSize }: { readonly pageSize?: number } = {},
): Promise<KnownObject[]> {
  const collector = bound.login.content.propertyCollector;
  const options = pageSize === undefined ? {} : { maxObjects: pageSize };
  const found: KnownObject[] = [];
  let page = await bound.call('RetrievePropertiesEx', collector, { specSet: [spec], options });
  while (page !== undefined) {
    // An empty page has no `objects`, whatever the schema says.
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

/** All objects of the given types below one, by a view that is made for it. */
export async function retrieveBelow(
  bound: Bound,
  container: Ref,
  wanted: Readonly<Record<string, readonly string[]>>,
  options?: { readonly pageSize?: number },
): Promise<KnownObject[]> {
  const { viewManager } = bound.login.content;
  if (viewManager === undefined) return [];
  const type = Object.keys(wanted);
  const view = await bound.call('CreateContainerView', viewManager, { container, type, recursive: true });
  try {
    return await retrieve(bound, viewSpec(view, wanted), options);
  } finally {
    // It would end with the session; but that may last for months.
    await bound.call('DestroyView', view, {}, regardless()).catch(() => undefined);
  }
}

/** Selects what a view shows. */
export function viewSpec(
  view: Ref,
  wanted: Readonly<Record<string, readonly string[]>>,
): Vim25['PropertyFilterSpec'] {
  return listSpec(view, 'view', wanted);
}

/** Selects what a property of an object lists. */
export function listSpec(
  obj: Ref,
  path: string,
  wanted: Readonly<Record<string, readonly string[]>>,
): Vim25['PropertyFilterSpec'] {
  const traversal: Vim25['TraversalSpec'] = { _type: 'TraversalSpec', type: obj.type, path, skip: false };
  return {
    propSet: Object.entries(wanted).map(([type, pathSet]) => ({ type, pathSet })),
    objectSet: [{ obj, skip: true, selectSet: [traversal] }],
  };
}

/** Selects objects by name. */
export function objectSpec(refs: readonly Ref[], pathSet: readonly string[]): Vim25['PropertyFilterSpec'] {
  const types = [...new Set(refs.map(({ type }) => type))];
  return { propSet: types.map((type) => ({ type, pathSet })), objectSet: refs.map((obj) => ({ obj })) };
}
