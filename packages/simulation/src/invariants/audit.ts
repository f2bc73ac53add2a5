import { textAt } from '../scenario/stored-objects.ts';
import type { Invariant, Truth } from './invariant.ts';

/** Values of the log field `audit` that report the deletion of a machine. */
const DELETIONS: readonly (string | undefined)[] = ['delete', 'collect'];

export interface AuditOptions {
  /** Subscribes to the log lines of all replicas. */
  readonly lines: (listener: (line: string) => void) => void;
  /** Subscribes to deletions that requests of the operator cause. Calls the listener with the id of the machine. */
  readonly onDeleted: (truth: Truth, listener: (id: string) => void) => void;
}

/** The audit log reports the deletion of a machine only if a request of the operator deleted that machine. */
export function auditedDeletionsAreTrue({ lines, onDeleted }: AuditOptions): Invariant {
  return {
    name: 'audited deletions are those of the operator',
    watch: (truth, violated) => {
      const deleted = new Set<string>();
      onDeleted(truth, (id) => void deleted.add(id));
      lines((line) => {
        if (!line.includes('"audit":')) return;
        const fields: unknown = JSON.parse(line);
        const machine = textAt(fields, 'machine') ?? '';
        if (DELETIONS.includes(textAt(fields, 'audit')) && !deleted.has(machine)) violated(line);
      });
    },
  };
}

/** Reports the deletions of external resources, for `auditedDeletionsAreTrue`. */
export function onExternalDeletion({ external }: Truth, listener: (id: string) => void): void {
  external.listen(({ before, after }) => {
    if (before !== undefined && !before.deleting && (after === undefined || after.deleting))
      listener(before.id);
  });
}
