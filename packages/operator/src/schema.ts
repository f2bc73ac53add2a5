import { schema } from '@vmwright/runtime';

/* Fields that the schemas of several kinds have in common. */

const { integer, optional, string } = schema;

/** Category of all kinds: `kubectl get vmwright` lists their objects. */
export const CATEGORY = 'vmwright';

const QUANTITY_RULE = {
  rule: 'isQuantity(self) && quantity(self).isGreaterThan(quantity("0"))',
  message: 'must be a size such as 20Gi',
};

/** A disk or memory size. */
export function size(description: string): schema.Schema<string> {
  return string({ description, maxLength: 32, rules: [QUANTITY_RULE] });
}

const RFC1123 = '^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$';

/** Name of another Kubernetes object. */
export function objectName(description: string): schema.Schema<string> {
  return string({ description, minLength: 1, maxLength: 253, pattern: RFC1123 });
}

/** A point in time in a status. */
export function time(description: string) {
  return optional(string({ description, format: 'date-time' }));
}

export const observedGeneration = optional(
  integer({
    description: 'Generation of the spec that this status describes; -1 before the first reconcile.',
    format: 'int64',
  }),
);

export const message = optional(
  string({ description: 'Message of the condition Ready: the state in a sentence.' }),
);

/**
 * Default of a status. -1 differs from every generation: without it, kstatus (Flux) would report a new object as ready.
 */
export const NEW_STATUS = { observedGeneration: -1 } as const;
