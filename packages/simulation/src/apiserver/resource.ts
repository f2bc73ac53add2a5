import type { DeclaredKind, Kind, KubeObject, schema } from '@vmwright/runtime';
import type { Json } from './json.ts';
import type { Draft } from './object.ts';
import type { OwnershipRules } from './ownership/managers.ts';
import { objectShape } from './ownership/shape.ts';
import type { Wrong } from './refusal.ts';
import { type ScalePaths, scaleProblems } from './scale.ts';

/** What the server must know of a kind to serve it. */
export interface ResourceRules {
  readonly kind: Kind;
  /** Of the object but for its apiVersion, kind and metadata. */
  readonly schema: schema.Schema;
  /** Whether it is declared by a CRD; the server's own kinds are structs, in which what is empty is not there. */
  readonly custom: boolean;
  /** Whether `status` is written apart from the rest. */
  readonly status: boolean;
  readonly scale?: ScalePaths;
  /** Fields by which lists and watches select, beside name and namespace: `spec.zone`. */
  readonly selectable?: readonly string[];
  /** What is there before anything is: structs that are never missing, and so nobody's. @default nothing */
  readonly empty?: Json;
  /** Brings an object into the form in which it is stored, after its schema has. */
  readonly canonical?: (object: Draft) => Draft;
  /** What is wrong beside the schema: CEL rules in our own words, and what Kubernetes checks in code. */
  readonly check?: (object: Json, before: Json | undefined) => readonly Wrong[];
}

/** A kind that is served. */
export interface Resource extends ResourceRules {
  /** `group/plural`, which is its place in the store. */
  readonly id: string;
  readonly apiVersion: string;
  readonly ownership: OwnershipRules;
}

const RESOURCES = new WeakMap<ResourceRules, Resource>();

/** The same for the same rules: each simulated world has a server of its own that serves the same kinds. */
export function resourceOf(rules: ResourceRules): Resource {
  const known = RESOURCES.get(rules);
  if (known !== undefined) return known;
  const { group, version, plural } = rules.kind;
  const apiVersion = group === '' ? version : `${group}/${version}`;
  const ownership = { apiVersion, shape: objectShape(rules.schema) };
  const made = { ...rules, id: `${group}/${plural}`, apiVersion, ownership };
  RESOURCES.set(rules, made);
  return made;
}

const DECLARED = new WeakMap<AnyDeclaredKind, ResourceRules>();

/** As much of a declared kind as is the same for all. */
export type AnyDeclaredKind = Kind<KubeObject> & Pick<DeclaredKind, 'declaration' | 'schema'>;

/** Of a kind of our own, as its CRD would have it served. @throws for CEL rules that nobody has put into words */
export function declaredResource(kind: AnyDeclaredKind, check?: ResourceRules['check']): ResourceRules {
  if (check !== undefined) return rulesOf(kind, check);
  const known = DECLARED.get(kind) ?? rulesOf(kind);
  DECLARED.set(kind, known);
  return known;
}

function rulesOf(kind: AnyDeclaredKind, check?: ResourceRules['check']): ResourceRules {
  const stored = kind.declaration.versions.find(({ name }) => name === kind.version);
  if (check === undefined && hasRules(kind.schema))
    throw new Error(
      `${kind.kind} has CEL rules, which the model of the API server cannot evaluate; give it a function that checks the same`,
    );
  const scale = stored?.scale && scalePaths(stored.scale);
  return {
    kind,
    schema: kind.schema,
    custom: true,
    status: stored?.status !== undefined,
    selectable: (stored?.selectableFields ?? []).map((path) => path.replace(/^\./, '')),
    ...(scale && { scale }),
    check: (object, before) => [
      ...(scale ? scaleProblems(object, scale) : []),
      ...(check?.(object, before) ?? []),
    ],
  };
}

function scalePaths({ specPath, statusPath, labelSelectorPath }: ScaleDeclaration): ScalePaths {
  const selector = labelSelectorPath === undefined ? undefined : stepsOf(labelSelectorPath);
  return { spec: stepsOf(specPath), status: stepsOf(statusPath), selector };
}

type ScaleDeclaration = NonNullable<DeclaredKind['declaration']['versions'][number]['scale']>;

function stepsOf(path: string): readonly string[] {
  return path.split('.').filter((step) => step !== '');
}

function hasRules(node: schema.Schema): boolean {
  if (node['x-kubernetes-validations'] !== undefined) return true;
  const inner = [...Object.values(node.properties ?? {}), node.items, node.additionalProperties];
  return inner.some((each) => each !== undefined && hasRules(each));
}
