import type { crdOf } from '../kind/crd.ts';
import type { DeclaredKind, NamedVersion } from '../kind/define.ts';
import { apiVersionOf, type Kind, type ObjectOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { isJsonObject } from '../kind/schema/json.ts';
import { DeclarationError } from '../kind/schema/schema.ts';
import { RequestError } from '../server/http-response.ts';
import { objectIn } from './object.ts';

export type Versions = readonly NamedVersion[];

/** Type of the objects of version `N`. */
export type ObjectAt<V extends Versions, N extends V[number]['name']> = ObjectOf<
  DeclaredKind<readonly [Extract<V[number], { readonly name: N }> & { readonly storage: true }]>
>;

export type StoredName<V extends Versions> = Extract<V[number], { readonly storage: true }>['name'];

/**
 * Content of a converted object. If labels or annotations are set here, they replace those of the original object. All
 * other metadata stays unchanged.
 */
export type Converted<T extends KubeObject> = Omit<T, keyof KubeObject> & {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
};

/** Conversion functions from and to the storage version, for each other version. */
export type ConversionRules<V extends Versions> = {
  readonly [N in Exclude<V[number]['name'], StoredName<V>>]: {
    readonly toStored: (object: ObjectAt<V, N>) => Converted<ObjectAt<V, StoredName<V>>>;
    readonly fromStored: (object: ObjectAt<V, StoredName<V>>) => Converted<ObjectAt<V, N>>;
  };
};

/** Untyped form of the conversion functions of one version. */
interface AnyConversion {
  // Declared as methods, so that functions for objects of only one version are accepted: TypeScript checks the
  // parameters of methods bivariantly. `objectIn` checks the version.
  toStored(object: KubeObject): Converted<KubeObject>;
  fromStored(object: KubeObject): Converted<KubeObject>;
}

/** Declared conversion webhook of a kind, for `manager.convert` and `webhookManifests`. */
export interface Conversion {
  readonly type: 'conversion';
  readonly kind: AnyDeclaredKind;
  /**
   * Converts an object.
   * @throws RequestError if the object is of another kind or unknown version; also errors of the conversion functions
   */
  convert(object: unknown, desiredApiVersion: string): KubeObject;
}

/** Kind with declared versions. */
export type AnyDeclaredKind = Kind & Parameters<typeof crdOf>[0];

/**
 * Declares a conversion webhook between all versions of a kind. Objects are converted by way of the storage version.
 *
 * Guarantees: kind, name and all metadata except labels and annotations stay unchanged.
 *
 * Assumptions: a round trip through any version loses no information. Fields that a version lacks should be kept in an
 * annotation.
 * @throws DeclarationError if a version has no conversion functions
 */
export function conversion<const V extends Versions>(
  kind: DeclaredKind<V>,
  rules: ConversionRules<V>,
): Conversion;
export function conversion(
  kind: AnyDeclaredKind,
  rules: Readonly<Record<string, AnyConversion>>,
): Conversion {
  const stored = apiVersionOf(kind);
  const versions = kind.declaration.versions.map(({ name }) => ({ ...kind, version: name }));
  for (const { version } of versions)
    if (version !== kind.version && rules[version] === undefined)
      throw new DeclarationError(`the conversion of ${kind.kind} has no rules for ${version}`);
  const rulesOf = (apiVersion: unknown) => {
    const version = versions.find((each) => apiVersionOf(each) === apiVersion);
    const functions = version && rules[version.version];
    if (version === undefined || functions === undefined)
      throw new RequestError(400, `${kind.kind} has no version ${apiVersion}\n`);
    return { version, functions };
  };
  return {
    type: 'conversion',
    kind,
    convert: (object, desired) => {
      const found = isJsonObject(object) ? object.apiVersion : undefined;
      const from = found === stored ? undefined : rulesOf(found);
      const to = desired === stored ? undefined : rulesOf(desired);
      const original = objectIn(from?.version ?? kind, object, 'objects');
      if (found === desired) return original;
      const hub =
        from === undefined ? original : converted(kind, original, (each) => from.functions.toStored(each));
      return to === undefined ? hub : converted(to.version, hub, (each) => to.functions.fromStored(each));
    },
  };
}

/** Converts an object and keeps its metadata, except labels and annotations that the conversion function sets. */
function converted(
  kind: Kind,
  from: KubeObject,
  convert: (object: KubeObject) => Converted<KubeObject>,
): KubeObject {
  const { metadata, ...content } = convert(from);
  const { labels = from.metadata.labels, annotations = from.metadata.annotations } = metadata ?? {};
  return {
    ...content,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: { ...from.metadata, ...(labels && { labels }), ...(annotations && { annotations }) },
  };
}
