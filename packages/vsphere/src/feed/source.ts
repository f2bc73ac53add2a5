import type { Bound } from '../calls/calls.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/** Something that is told what changes in vCenter. */
export interface Source {
  /** Makes what the filter needs in this session, and says what it shall select. Everything is told from the start. */
  open(bound: Bound): Promise<Vim25['PropertyFilterSpec']>;
  /** An object that is told as new may be known: vCenter says so too of one that it has lost sight of. */
  apply(updates: readonly Vim25['ObjectUpdate'][]): void;
  /** All that there is has been told. */
  settled(): void;
  /** Nothing is told for now: until it is `resumed`, or all begins again with `open`. */
  interrupted(error: unknown): void;
  /** It goes on where it was interrupted, and nothing was missed. */
  resumed(): void;
}
