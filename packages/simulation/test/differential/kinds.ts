import { defineKind, foreignKind, type Kind, type KubeObject, Lease, schema } from '@vmwright/runtime';

const { anything, array, integer, literals, map, object, optional, string } = schema;

/** A kind with every type of field that apply, patch and validation treat differently. */
export const Thing = defineKind({
  group: 'differential.vmwright.dev',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  spec: object({
    level: optional(integer({ minimum: 1, maximum: 10 })),
    power: literals(['High', 'Low'], { default: 'Low' }),
    nick: optional(string({ maxLength: 5 })),
    disks: optional(
      array(object({ name: string(), size: integer({ default: 10 }), note: optional(string()) }), {
        list: 'map',
        keys: ['name'],
      }),
    ),
    tags: optional(array(string(), { list: 'set' })),
    steps: optional(array(integer())),
    labels: optional(map(string())),
    options: optional(map(string(), { atomic: true })),
    nested: optional(object({ a: optional(string()), b: optional(object({ c: optional(string()) })) })),
    extra: optional(anything()),
    replicas: integer({ default: 1, minimum: 0 }),
  }),
  status: object({
    phase: optional(string()),
    replicas: optional(integer()),
    selector: optional(string()),
    conditions: optional(
      array(object({ type: string(), status: string() }), { list: 'map', keys: ['type'] }),
    ),
  }),
  scale: {
    specPath: '.spec.replicas',
    statusPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  },
});

/** A kind without the status subresource. */
export const Plain = defineKind({
  group: 'differential.vmwright.dev',
  version: 'v1',
  kind: 'Plain',
  plural: 'plains',
  spec: object({ level: optional(integer({ minimum: 1 })), labels: optional(map(string())) }),
});

/** A cluster-scoped kind. */
export const Global = defineKind({
  group: 'differential.vmwright.dev',
  version: 'v1',
  kind: 'Global',
  plural: 'globals',
  scope: 'Cluster',
  spec: object({ level: optional(integer({ minimum: 1 })), labels: optional(map(string())) }),
});

/** The kinds that CRDs declare. */
export const DECLARED = [Thing, Plain, Global] as const;

const core = (kind: string, plural: string) =>
  foreignKind<KubeObject>({ group: '', version: 'v1', kind, plural, scope: 'Namespaced' });

export const KINDS = {
  thing: Thing,
  plain: Plain,
  global: Global,
  configmap: core('ConfigMap', 'configmaps'),
  secret: core('Secret', 'secrets'),
  lease: Lease,
} as const satisfies Record<string, Kind>;

export type KindName = keyof typeof KINDS;

export function kindOf(name: KindName): Kind {
  return KINDS[name];
}
