import { type Entity, isOfType } from './entity.ts';
import { managedObjectNotFound } from './fault.ts';
import type { Registry } from './registry.ts';
import type { Fields } from './request.ts';
import { SingleView, type View } from './view.ts';

/** The objects and properties that a PropertyFilterSpec selects. */
export class Selection {
  readonly views: readonly View[];
  readonly #paths: readonly { readonly type: string; readonly paths: readonly string[] }[];

  /** @throws VimFault if an object or a view does not exist */
  constructor(spec: Fields, registry: Registry, views: ReadonlyMap<string, View>) {
    this.#paths = spec
      .each('propSet')
      .map((each) => ({ type: each.text('type') ?? '', paths: each.texts('pathSet') }));
    this.views = spec.each('objectSet').map((each) => {
      const ref = each.ref('obj') ?? { type: '', value: '' };
      const view = views.get(ref.value);
      if (view !== undefined) return view;
      if (registry.get(ref) === undefined) throw managedObjectNotFound(ref);
      return new SingleView(ref, registry);
    });
  }

  /** Returns the selected properties of an object; undefined if its type is not selected. */
  pathsOf({ ref }: Entity): readonly string[] | undefined {
    return this.#paths.find(({ type }) => isOfType(ref.type, type))?.paths;
  }

  *entities(): Generator<Entity, void, undefined> {
    for (const view of this.views) yield* view.members();
  }
}
