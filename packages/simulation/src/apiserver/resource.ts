import type { DeclaredKind, Kind, KubeObject, schema } from '@vmwright/runtime';
import type { FieldError } from './errors.ts';
import type { Json } from './json.ts';
import type { Draft } from './object.ts';
import type { OwnershipRules } from './ownership/managers.ts';
import { objectShape } from './ownership/shape.ts';
import { type ScalePaths, scaleProblems } from './scale.ts';

/** Definition of a served kind. */
export interface ResourceRules {
  readonly kind: Kind;
  /** Schema of the object without apiVersion, kind and metadata. */
  readonly schema: schema.Schema;
  /** Whether a CRD declares the kind. The API server decodes built-in kinds into structs, which drop empty fields. */
  readonly custom: boolean;
  /** Whether the kind has the status subresource. */
  readonly status: boolean;
  readonly scale?: ScalePaths;
  /** Fields for field selectors in addition to name and namespace, such as `spec.zone`. */
  readonly selectable?: readonly string[];
  /**
   * Structs that every object has from the start. A manager can own fields within the structs, but not the structs
   * themselves.
   * @default {}
   */
  readonly empty?: Json;
  /** Converts an admitted object to its stored form. */
  readonly canonical?: (object: Draft) => Draft;
  /** Validation beyond the schema: CEL rules in TypeScript, and checks that Kubernetes does in code. */
  readonly check?: (object: Json, before: Json | undefined) => readonly FieldError[];
}

/** A served kind. */
export interface Resource extends ResourceRules {
  /** `group/plural`, the key of the kind in the store. */
  readonly id: string;
  readonly apiVersion: string;
  readonly ownership: OwnershipRules;
}

const RESOURCES = new WeakMap<ResourceRules, Resource>();

/**
 * Returns the resource for a kind's rules, with its id, API version and ownership rules. Cached by `rules`, because the
 * API servers of all simulations serve the same kinds.
 */
export function resourceOf(rules: ResourceRules): Resource {
  const cached = RESOURCES.get(rules);
  if (cached !== undefined) return cached;
  const { group, version, plural } = rules.kind;
  const apiVersion = group === '' ? version : `${group}/${version}`;
  const ownership = { apiVersion, shape: objectShape(rules.schema) };
  const resource = { ...rules, id: `${group}/${plural}`, apiVersion, ownership };
  RESOURCES.set(rules, resource);
  return resource;
}

const DECLARED = new WeakMap<AnyDeclaredKind, ResourceRules>();

/** A kind that a CRD declares, for any object type. */
export type AnyDeclaredKind = Kind<KubeObject> & Pick<DeclaredKind, 'declaration' | 'schema'>;

/** Returns the rules of a kind that a CRD declares. @throws if the kind has CEL rules and `check` is missing */
export function declaredResource(kind: AnyDeclaredKind, check?: ResourceRules['check']): ResourceRules {
  if (check !== undefined) return rulesOf(kind, check);
  const rules = DECLARED.get(kind) ?? rulesOf(kind);
  DECLARED.set(kind, rules);
  return rules;
}

function rulesOf(kind: AnyDeclaredKind, check?: ResourceRules['check']): ResourceRules {
  const stored = kind.declaration.versions.find(({ name }) => name === kind.version);
  if (check === undefined && hasRules(kind.schema))
    throw new Error(
      `${kind.kind} has CEL rules, which the API server model cannot evaluate; pass serve() a function that does the same checks`,
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
