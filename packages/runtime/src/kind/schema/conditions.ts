import type { Condition } from '../../conditions/conditions.ts';
import { array, object } from './composite.ts';
import { integer, literals, string } from './scalar.ts';
import { optional, type Schema } from './schema.ts';

/**
 * Schema of the `conditions` of a status, as `setCondition` writes and `kubectl wait` reads them.
 * @param types the kind's condition types and their meaning, for `kubectl explain`
 */
export function conditions(types = ''): Schema<readonly Condition[]> {
  const condition = object({
    type: string({
      description: 'Type of the condition in CamelCase, such as Ready, Reconciling or Stalled.',
    }),
    status: literals(['True', 'False', 'Unknown'], {
      description: 'Whether the condition holds: True, False or Unknown.',
    }),
    reason: string({ description: 'Cause of the status in one word in CamelCase, for programs.' }),
    message: string({ description: 'Cause of the status and what the user can do about it, for people.' }),
    observedGeneration: optional(
      integer({ description: 'Generation of the spec that the condition was set for.' }),
    ),
    lastTransitionTime: string({
      description: 'Time at which the status of the condition changed last.',
      format: 'date-time',
    }),
  });
  return array(condition, {
    description: `Conditions of the object, at most one of each type. ${types}`.trim(),
    list: 'map',
    keys: ['type'],
  });
}
