import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';

const GROUP = 'runtime.simulation.vmwright.dev';
const { object, optional, string, integer, array, literals } = schema;

/** Test kind that manages an external resource, owns a ConfigMap and reads the Setting of the same name. */
export const Widget = defineKind({
  group: GROUP,
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  spec: object({ text: string() }),
  status: object({
    /** Result computed from the spec, the annotation `NOTE`, the Setting and the note in the owned ConfigMap. */
    made: string(),
    observedGeneration: integer(),
    conditions: array(
      object({
        type: string(),
        status: literals(['True', 'False', 'Unknown']),
        reason: string(),
        message: string(),
        observedGeneration: optional(integer()),
        lastTransitionTime: string(),
      }),
    ),
  }),
});
export type Widget = ObjectOf<typeof Widget>;

/** Test kind that affects the widget of the same name while its label `use` is `yes`. */
export const Setting = defineKind({
  group: GROUP,
  version: 'v1',
  kind: 'Setting',
  plural: 'settings',
  spec: object({ value: string() }),
});
export type Setting = ObjectOf<typeof Setting>;

/** Test kind with reconciles that fail during the fault phase. */
export const Probe = defineKind({
  group: GROUP,
  version: 'v1',
  kind: 'Probe',
  plural: 'probes',
  spec: object({ round: integer() }),
  status: object({ observedGeneration: integer() }),
});
export type Probe = ObjectOf<typeof Probe>;

export const FINALIZER = `${GROUP}/outside`;
export const FOREIGN_FINALIZER = 'example.com/hold';
export const IN_USE = { use: 'yes' };
export const NOTE = 'example.com/note';
