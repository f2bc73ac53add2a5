import type { Outcome } from '@vmwright/runtime';

/* Tables of the conditions of each kind. The types of the reasons and the documentation are derived from them. */

/** A row of a kind's table of conditions. Texts are Markdown; links are relative to the page of the kind. */
export interface ConditionDoc {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown' | 'False, Unknown' | 'True, False';
  /** Reasons with the same meaning. If empty, the condition has the same reason as `Ready`. */
  readonly reasons: readonly string[];
  readonly meaning: string;
  /** What the user can do. */
  readonly remedy: string;
}

/** Union of all reasons in a table of conditions. The type of the reasons that a kind may report is based on it. */
export type ReasonOf<T extends readonly ConditionDoc[]> = T[number]['reasons'][number];

/** Outcome of a reconcile with one of these reasons. */
export type OutcomeWith<Reason extends string> = Outcome & { readonly reason: Reason };

/** Conditions that every kind has. */
export const COMMON_CONDITIONS: readonly ConditionDoc[] = [
  {
    type: 'Reconciling',
    status: 'True',
    reasons: [],
    meaning:
      'The operator works on the object, or waits for something that ends by itself. Absent otherwise.',
    remedy: 'Wait.',
  },
  {
    type: 'Stalled',
    status: 'True',
    reasons: [],
    meaning: 'The object does not become ready until a person changes something. Absent otherwise.',
    remedy: 'See `Ready` with the same reason.',
  },
  {
    type: 'Paused',
    status: 'True',
    reasons: ['Annotation'],
    meaning:
      'The annotation `vmwright.dev/paused` is set: the operator observes but changes nothing. Absent otherwise.',
    remedy: 'Remove the annotation to resume.',
  },
];
