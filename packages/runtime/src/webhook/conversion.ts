import type { crdOf } from '../kind/crd.ts';
import type { DeclaredKind, NamedVersion } from '../kind/define.ts';
import { apiVersionOf, type Kind, type ObjectOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { isJsonObject } from '../kind/schema/json.ts';
import { DeclarationError } from '../kind/schema/schema.ts';
import { RequestError } from '../server/answer.ts';
import { objectIn } from './object.ts';

export type Versions = readonly NamedVersion[];

/** The objects of a version: those of a kind that has it alone, and so stores it. */
export type ObjectAt<V extends Versions, N extends V[number]['name']> = ObjectOf<
  DeclaredKind<readonly [Extract<V[number], { readonly name: N }> & { readonly storage: true }]>
>;

export type StoredName<V extends Versions> = Extract<V[number], { readonly storage: true }>['name'];

/**
 * An object without what stays as it is anyway. Labels and annotations are taken if given, and kept if not; all other
 * metadata the API server keeps by itself.
 */
export type Converted<T extends KubeObject> = Omit<T, keyof KubeObject> & {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
};

/** For each version but the stored one, the way there and back. */
export type ConversionRules<V extends Versions> = {
  readonly [N in Exclude<V[number]['name'], StoredName<V>>]: {
    readonly toStored: (object: ObjectAt<V, N>) => Converted<ObjectAt<V, StoredName<V>>>;
    readonly fromStored: (object: ObjectAt<V, StoredName<V>>) => Converted<ObjectAt<V, N>>;
  };
};

/** The same of any kind. */
interface AnyWay {
  // Methods, which may be given functions for objects of one version: `objectIn` sees to it that they get no others.
  toStored(object: KubeObject): Converted<KubeObject>;
  fromStored(object: KubeObject): Converted<KubeObject>;
}

/** A kind's conversion, declared: for `manager.convert` and `webhookManifests`. */
export interface Conversion {
  readonly type: 'conversion';
  readonly kind: AnyDeclaredKind;
  /** @throws what the rules throw, or RequestError for what is no object of the kind */
  convert(object: unknown, desiredApiVersion: string): KubeObject;
}

/** As far as a kind must be known to convert it. */
export type AnyDeclaredKind = Kind & Parameters<typeof crdOf>[0];

/**
 * Objects of any version in any other, by way of the stored one.
 *
 * Guarantees: kind, name and all other metadata stay; the API server refuses what has another name, namespace or UID and
 * restores the rest but for labels and annotations.
 * Assumptions: there and back again gives the same, or information is lost; what the other version has no field for goes
 * into an annotation.
 * @throws DeclarationError when a version has no rules
 */
export function conversion<const V extends Versions>(
  kind: DeclaredKind<V>,
  rules: ConversionRules<V>,
): Conversion;
export function conversion(kind: AnyDeclaredKind, rules: Readonly<Record<string, AnyWay>>): Conversion {
  const stored = apiVersionOf(kind);
  const versions = kind.declaration.versions.map(({ name }) => ({ ...kind, version: name }));
  for (const { version } of versions)
    if (version !== kind.version && rules[version] === undefined)
      throw new DeclarationError(`the conversion of ${kind.kind} has no rules for ${version}`);
  const wayOf = (apiVersion: unknown) => {
    const version = versions.find((each) => apiVersionOf(each) === apiVersion);
    const way = version && rules[version.version];
    if (version === undefined || way === undefined)
      throw new RequestError(400, `${kind.kind} has no version ${apiVersion} to convert\n`);
    return { version, way };
  };
  return {
    type: 'conversion',
    kind,
    convert: (object, desired) => {
      const found = isJsonObject(object) ? object.apiVersion : undefined;
      const from = found === stored ? undefined : wayOf(found);
      const to = desired === stored ? undefined : wayOf(desired);
      const given = objectIn(from?.version ?? kind, object, 'objects');
      if (found === desired) return given;
      const hub = from === undefined ? given : whole(kind, given, (each) => from.way.toStored(each));
      return to === undefined ? hub : whole(to.version, hub, (each) => to.way.fromStored(each));
    },
  };
}

/** What the rules make of it, with all that they have no say in. */
function whole(
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
