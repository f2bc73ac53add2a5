import type { Column, CrdConversion, Declaration, NamedVersion } from './define.ts';
import { foreignKind } from './kind.ts';
import type { KubeObject, ObjectMeta } from './object.ts';
import type { Schema } from './schema/schema.ts';
import { manifestYaml } from './yaml.ts';

/** A CustomResourceDefinition (apiextensions.k8s.io/v1), with the fields that `crdOf` sets. */
export interface CustomResourceDefinition extends KubeObject {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly group: string;
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames?: readonly string[];
      readonly categories?: readonly string[];
    };
    readonly scope: 'Namespaced' | 'Cluster';
    readonly versions: readonly CrdVersion[];
    readonly conversion?: CrdConversion;
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
    }[];
    readonly storedVersions?: readonly string[];
  };
}

/** A version in a CustomResourceDefinition. */
export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  readonly schema: { readonly openAPIV3Schema: Schema };
  readonly subresources?: {
    readonly status?: Readonly<Record<string, never>>;
    readonly scale?: {
      readonly specReplicasPath: string;
      readonly statusReplicasPath: string;
      readonly labelSelectorPath?: string;
    };
  };
  readonly additionalPrinterColumns?: readonly Column[];
  readonly selectableFields?: readonly { readonly jsonPath: string }[];
}

export const CustomResourceDefinition = foreignKind<CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
});

/** The part of a declared kind (see `defineKind`) that `crdOf` reads. */
export interface CrdSource {
  readonly declaration: Declaration;
  at(version: string): { readonly schema: Schema };
}

/** Returns the CustomResourceDefinition of a declared kind. */
export function crdOf(kind: CrdSource): CustomResourceDefinition {
  const { declaration } = kind;
  const { group, plural, scope = 'Namespaced', annotations, conversion } = declaration;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, ...(annotations && { annotations }) },
    spec: {
      group,
      names: namesOf(declaration),
      scope,
      versions: declaration.versions.map((version) => crdVersion(version, kind.at(version.name).schema)),
      ...(conversion && { conversion }),
    },
  };
}

/** Returns the CustomResourceDefinition of a declared kind as YAML. */
export function crdYaml(kind: CrdSource): Promise<string> {
  return manifestYaml([crdOf(kind)]);
}

function namesOf(declaration: Declaration): CustomResourceDefinition['spec']['names'] {
  const { kind, plural, shortNames, categories } = declaration;
  return {
    kind,
    listKind: declaration.listKind ?? `${kind}List`,
    plural,
    singular: declaration.singular ?? kind.toLowerCase(),
    ...(shortNames && { shortNames }),
    ...(categories && { categories }),
  };
}

function crdVersion(version: NamedVersion, schema: Schema): CrdVersion {
  const { name, served = true, storage = false, deprecated = false } = version;
  const { status, scale, columns, selectableFields } = version;
  return {
    name,
    served,
    storage,
    ...(deprecated && { deprecated: true }),
    ...(typeof deprecated === 'string' && { deprecationWarning: deprecated }),
    ...(columns && { additionalPrinterColumns: columns }),
    ...(selectableFields && { selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })) }),
    schema: { openAPIV3Schema: schema },
    ...((status ?? scale) && {
      subresources: {
        ...(status && { status: {} }),
        ...(scale && { scale: scalePaths(scale) }),
      },
    }),
  };
}

function scalePaths({ specPath, statusPath, labelSelectorPath }: NonNullable<NamedVersion['scale']>) {
  return {
    specReplicasPath: specPath,
    statusReplicasPath: statusPath,
    ...(labelSelectorPath !== undefined && { labelSelectorPath }),
  };
}
