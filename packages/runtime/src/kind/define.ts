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

/** How a kind is called, and where it belongs. */
export interface Names {
  readonly group: string;
  /** `VmGroup` */
  readonly kind: string;
  /** `vmgroups` */
  readonly plural: string;
  /** @default the kind in lower case */
  readonly singular?: string;
  /** @default the kind and `List` */
  readonly listKind?: string;
  readonly shortNames?: readonly string[];
  /** `kubectl get <category>` shows it with others: `all`. */
  readonly categories?: readonly string[];
  /** @default 'Namespaced' */
  readonly scope?: 'Namespaced' | 'Cluster';
  /** Of the CustomResourceDefinition. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** How objects get from one version to another. @default by changing their apiVersion, and nothing else */
  readonly conversion?: Conversion;
}

/** What the objects of one version look like, and how they are shown. */
export interface Version {
  readonly description?: string;
  readonly spec: Schema;
  /** Switches the status subresource on. */
  readonly status?: Schema;
  /** CEL rules about the whole object. */
  readonly rules?: readonly Rule[];
  /** Whether `kubectl` warns those who use it, and with which words. @default false */
  readonly deprecated?: boolean | string;
  readonly columns?: readonly Column[];
  /** Switches the scale subresource on. */
  readonly scale?: ScalePaths;
  /** Fields by which lists and watches can select: `.spec.zone`. */
  readonly selectableFields?: readonly string[];
}

export interface NamedVersion extends Version {
  readonly name: string;
  /** @default true */
  readonly served?: boolean;
  /** In which objects are kept; true for exactly one. @default false */
  readonly storage?: boolean;
}

/** A column of `kubectl get`. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** `.status.phase` */
  readonly jsonPath: string;
  readonly description?: string;
  /** 0 is always shown, more only with `-o wide`. @default 0 */
  readonly priority?: number;
  readonly format?: 'int32' | 'int64' | 'float' | 'double' | 'byte' | 'date' | 'date-time' | 'password';
}

interface ScalePaths {
  /** Of the wanted number: `.spec.replicas`. */
  readonly specPath: string;
  /** Of the number there is: `.status.replicas`. */
  readonly statusPath: string;
  /** Of the selector, as a string, by which an autoscaler finds what it measures: `.status.selector`. */
  readonly labelSelectorPath?: string;
}

export type Conversion =
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

/** All that was said about a kind, in one form. */
export interface Declaration extends Names {
  readonly versions: readonly NamedVersion[];
}

/** The objects of a version. */
type ObjectIn<V extends Version> = V extends { readonly status: Schema<infer U> }
  ? ObjectWithStatus<ValueOf<V['spec']>, U>
  : ObjectWithSpec<ValueOf<V['spec']>>;

interface ObjectWithSpec<S> extends KubeObject {
  readonly spec: S;
}

interface ObjectWithStatus<S, U> extends ObjectWithSpec<S> {
  readonly status?: U;
}

/** A kind in one of its versions. */
interface DeclaredVersion<T extends KubeObject = KubeObject> extends Kind<T> {
  /** Of the object but for its apiVersion, kind and metadata. */
  readonly schema: Schema<Omit<T, keyof KubeObject>>;
}

/** A kind of our own, in the version in which it is stored. */
export interface DeclaredKind<V extends readonly NamedVersion[] = readonly NamedVersion[]>
  extends DeclaredVersion<ObjectIn<StorageVersion<V>>> {
  readonly declaration: Declaration;
  /** The same kind in another version. */
  at<N extends V[number]['name']>(
    name: N,
  ): DeclaredVersion<ObjectIn<Extract<V[number], { readonly name: N }>>>;
}

type StorageVersion<V extends readonly NamedVersion[]> =
  Extract<V[number], { readonly storage: true }> extends infer S extends NamedVersion
    ? [S] extends [never]
      ? V[number] // of a kind of which nothing is known
      : S
    : never;

/** As the shorthand for one version means it. */
type SingleVersion<N extends string, S, U> = readonly [
  { readonly name: N; readonly storage: true; readonly spec: Schema<S> } & ([U] extends [never]
    ? unknown
    : { readonly status: Schema<U> }),
];

/** The compiler looks for misspelt fields in object literals, but not in what it infers a type from. */
type ExactFields<V> = {
  readonly [I in keyof V]: V[I] & { readonly [K in Exclude<keyof V[I], keyof NamedVersion>]: never };
};

/**
 * Declares a kind once, for the compiler, the API server (`crdOf`) and the validator (`schema`). With one version:
 *
 *     const Vm = defineKind({
 *       group: 'example.org', version: 'v1', kind: 'Vm', plural: 'vms',
 *       spec: object({ cpus: integer({ description: 'How many it has.', minimum: 1 }) }),
 *       status: object({ phase: optional(literals(['Running', 'Stopped'])) }),
 *     });
 *     type Vm = ObjectOf<typeof Vm>;
 *
 * With several: `versions: [{ name: 'v1', storage: true, spec, … }, { name: 'v1beta1', spec, … }]`.
 *
 * @throws DeclarationError for what the API server would refuse and the compiler does not see
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

/** Groups that belong to Kubernetes: the API server wants to know who has approved of a kind in there. */
const PROTECTED_GROUP = /(^|\.)(k8s|kubernetes)\.io$/;
const APPROVAL_ANNOTATION = 'api-approved.kubernetes.io';

function check({ group, kind, annotations = {}, versions }: Declaration): void {
  const names = versions.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new DeclarationError(`${kind} has two versions named ${twice}`);
  if (PROTECTED_GROUP.test(group) && annotations[APPROVAL_ANNOTATION] === undefined)
    throw new DeclarationError(
      `${kind} is in ${group}, a group of Kubernetes itself, and so needs the annotation ${APPROVAL_ANNOTATION}`,
    );
}
