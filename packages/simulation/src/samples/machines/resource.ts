import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';

const { object, optional, string, integer, literals } = schema;

/** A machine of the remote backend. */
export const Machine = defineKind({
  group: 'simulation-test.vmwright.dev',
  version: 'v1',
  kind: 'Machine',
  plural: 'machines',
  spec: object({ size: integer({ minimum: 1 }) }),
  status: object({
    /** Number of stored intents. */
    attempts: optional(integer()),
    machineId: optional(string()),
    /** Last observed size. */
    size: optional(integer()),
    phase: optional(literals(['Pending', 'Creating', 'Ready', 'Lost'])),
    observedGeneration: optional(integer()),
  }),
});
export type Machine = ObjectOf<typeof Machine>;
export type MachineStatus = NonNullable<Machine['status']>;
