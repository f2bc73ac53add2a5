import type { Kind } from './kind.ts';
import type { KubeObject } from './object.ts';
import { object } from './schema/composite.ts';
import {
  DeclarationError,
  optional,
  type Rule,
  type Schema,
  type SchemaNode,
  type ValueOf,
} from './schema/schema.ts';

/** Names and scope of a kind. */
export interface Names {
  readonly group: string;
  /** Name of the kind, such as `VmGroup`. */
  readonly kind: string;
  /** Plural name of the resource, such as `vmgroups`. */
  readonly plural: string;
  /** @default the kind in lower case */
  readonly singular?: string;
  /** @default the kind followed by `List` */
  readonly listKind?: string;
  readonly shortNames?: readonly string[];
  /** Groups of kinds that `kubectl get <category>` lists together, such as `all`. */
  readonly categories?: readonly string[];
  /** @default 'Namespaced' */
  readonly scope?: 'Namespaced' | 'Cluster';
  /** Annotations of the CustomResourceDefinition. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Conversion between versions. @default 'None', which changes the apiVersion only */
  readonly conversion?: CrdConversion;
}

/** Schema, columns and subresources of one version. */
export interface Version {
  readonly description?: string;
  readonly spec: Schema;
  /** Schema of the status; enables the status subresource. */
  readonly status?: Schema;
  /** CEL rules for the whole object. */
  readonly rules?: readonly Rule[];
  /** Marks the version as deprecated; a string is the warning that clients show. @default false */
  readonly deprecated?: boolean | string;
  /** Columns of `kubectl get`. */
  readonly columns?: readonly Column[];
  /** Enables the scale subresource. */
  readonly scale?: ScalePaths;
  /** Fields that field selectors of lists and watches can use: `.spec.zone`. */
  readonly selectableFields?: readonly string[];
}

/** One of several versions of a kind. */
export interface NamedVersion extends Version {
  readonly name: string;
  /** @default true */
  readonly served?: boolean;
  /** Whether objects are stored in this version; true for exactly one version. @default false */
  readonly storage?: boolean;
}

/** A column of `kubectl get`. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** Path of the field to show, such as `.status.phase`. */
  readonly jsonPath: string;
  readonly description?: string;
  /** Columns with a priority above 0 are shown only with `-o wide`. @default 0 */
  readonly priority?: number;
  readonly format?: 'int32' | 'int64' | 'float' | 'double' | 'byte' | 'date' | 'date-time' | 'password';
}

/** JSON paths of the scale subresource. */
export interface ScalePaths {
  /** Path of the desired replicas: `.spec.replicas`. */
  readonly specPath: string;
  /** Path of the observed replicas: `.status.replicas`. */
  readonly statusPath: string;
  /** Path of the field with the label selector for autoscalers, in the form of a string: `.status.selector`. */
  readonly labelSelectorPath?: string;
}

/** Conversion between the versions of a kind, as in a CustomResourceDefinition. */
export type CrdConversion =
  | { readonly strategy: 'None' }
  | {
      readonly strategy: 'Webhook';
      readonly webhook: {
        readonly conversionReviewVersions: readonly string[];
        readonly clientConfig: {
          readonly caBundle?: string;
          readonly url?: string;
          readonly service?: {
            readonly namespace: string;
            readonly name: string;
            readonly path?: string;
            readonly port?: number;
          };
        };
      };
    };

/** Declaration of a kind with its list of versions. */
export interface Declaration extends Names {
  readonly versions: readonly NamedVersion[];
}

/** Type of the objects of a version. */
export type ObjectIn<V extends Version> = V extends { readonly status: Schema<infer U> }
  ? ObjectWithStatus<ValueOf<V['spec']>, U>
  : ObjectWithSpec<ValueOf<V['spec']>>;

/** An object with a spec and no status. */
export interface ObjectWithSpec<S> extends KubeObject {
  readonly spec: S;
}

/** An object with a spec and a status. */
export interface ObjectWithStatus<S, U> extends ObjectWithSpec<S> {
  readonly status?: U;
}

/** A kind in one of its versions. */
export interface DeclaredVersion<T extends KubeObject = KubeObject> extends Kind<T> {
  /** Schema of the object without apiVersion, kind and metadata. */
  readonly schema: Schema<Omit<T, keyof KubeObject>>;
}

/** A kind that this program declares, in its storage version. */
export interface DeclaredKind<V extends readonly NamedVersion[] = readonly NamedVersion[]>
  extends DeclaredVersion<ObjectIn<StorageVersion<V>>> {
  readonly declaration: Declaration;
  /** The same kind in another version. */
  at<N extends V[number]['name']>(
    name: N,
  ): DeclaredVersion<ObjectIn<Extract<V[number], { readonly name: N }>>>;
}

/** The storage version among a kind's versions. */
export type StorageVersion<V extends readonly NamedVersion[]> =
  Extract<V[number], { readonly storage: true }> extends infer S extends NamedVersion
    ? [S] extends [never]
      ? V[number] // the compiler does not know which version is stored
      : S
    : never;

/** The versions of a kind that is declared with the shorthand for one version. */
export type SingleVersion<N extends string, S, U> = readonly [
  { readonly name: N; readonly storage: true; readonly spec: Schema<S> } & ([U] extends [never]
    ? unknown
    : { readonly status: Schema<U> }),
];

/** Makes unknown fields a compile error: the compiler does not detect them in a type parameter that it infers. */
export type ExactFields<V> = {
  readonly [I in keyof V]: V[I] & { readonly [K in Exclude<keyof V[I], keyof NamedVersion>]: never };
};

/**
 * Declares a kind for the compiler, the API server (`crdOf`) and the validator (`schema`). With one version:
 *
 *     const Vm = defineKind({
 *       group: 'example.org', version: 'v1', kind: 'Vm', plural: 'vms',
 *       spec: object({ cpus: integer({ description: 'Number of virtual CPUs.', minimum: 1 }) }),
 *       status: object({ phase: optional(literals(['Running', 'Stopped'])) }),
 *     });
 *     type Vm = ObjectOf<typeof Vm>;
 *
 * With several versions: `versions: [{ name: 'v1', storage: true, spec, … }, { name: 'v1beta1', spec, … }]`.
 *
 * @throws DeclarationError if the API server would reject the declaration for a reason that the compiler cannot check
 */
export function defineKind<const N extends string, S, U = never>(
  declaration: Names &
    Omit<Version, 'spec' | 'status'> & {
      readonly version: N;
      readonly spec: Schema<S>;
      readonly status?: Schema<U>;
    },
): DeclaredKind<SingleVersion<N, S, U>>;
export function defineKind<const V extends readonly NamedVersion[]>(
  declaration: Names & { readonly versions: V & ExactFields<V> },
): DeclaredKind<V>;
export function defineKind(
  given: Declaration | (Names & Version & { readonly version: string }),
): DeclaredKind {
  const declaration =
    'versions' in given ? given : { ...given, versions: [{ ...given, name: given.version, storage: true }] };
  check(declaration);
  const at = (name: string) => declaredVersion(declaration, name);
  return { ...at(storedVersion(declaration).name), declaration, at };
}

function declaredVersion(declaration: Declaration, name: string) {
  const { group, kind, plural, scope = 'Namespaced', versions } = declaration;
  const version = versions.find((candidate) => candidate.name === name);
  if (version === undefined) throw new DeclarationError(`${kind} has no version ${name}`);
  return { group, version: name, kind, plural, scope, schema: rootSchema(version) };
}

function rootSchema({ description, spec, status, rules }: NamedVersion): SchemaNode {
  const about = { ...(description !== undefined && { description }), ...(rules && { rules }) };
  return status === undefined ? object({ spec }, about) : object({ spec, status: optional(status) }, about);
}

function storedVersion({ kind, versions }: Declaration): NamedVersion {
  const [stored, ...more] = versions.filter(({ storage }) => storage);
  if (stored === undefined || more.length > 0)
    throw new DeclarationError(`exactly one version of ${kind} must have storage: true`);
  return stored;
}

/** Groups that belong to Kubernetes: the API server requires an approval annotation for a CRD in them. */
const PROTECTED_GROUP = /(^|\.)(k8s|kubernetes)\.io$/;
const APPROVAL_ANNOTATION = 'api-approved.kubernetes.io';

function check({ group, kind, annotations = {}, versions }: Declaration): void {
  const names = versions.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new DeclarationError(`${kind} has two versions named ${twice}`);
  if (PROTECTED_GROUP.test(group) && annotations[APPROVAL_ANNOTATION] === undefined)
    throw new DeclarationError(
      `${kind} is in the protected group ${group} and needs the annotation ${APPROVAL_ANNOTATION}`,
    );
}
