import type { Condition } from '../../conditions/conditions.ts';
import { array, object } from './composite.ts';
import { integer, literals, string } from './scalar.ts';
import { optional, type Schema } from './schema.ts';

/** The `conditions` of a status, as `kubectl wait` reads them and `setCondition` writes them. */
export function conditions(): Schema<readonly Condition[]> {
  const condition = object({
    type: string({ description: 'What it is about: Ready.' }),
    status: literals(['True', 'False', 'Unknown']),
    reason: string({ description: 'One word, for programs.' }),
    message: string({ description: 'A sentence: what is so, and what to do about it.' }),
    observedGeneration: optional(integer({ description: 'Of the spec that this was said about.' })),
    lastTransitionTime: string({ description: 'When the status became what it is.', format: 'date-time' }),
  });
  return array(condition, { description: 'What is true of it.', list: 'map', keys: ['type'] });
}
