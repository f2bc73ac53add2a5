import type { Findings } from './findings.ts';
import type { Life } from './life.ts';
import { IN_ORDER } from './replicas.ts';

/** For which a program may end by itself, to be started anew: it cannot do its work, or not be sure that it does none. */
const REASONS = ['no complete list of', 'a reconcile has not ended within'];

export function endsOnlyForAReason(findings: Findings, { name }: Life, why: string): void {
  if (why !== IN_ORDER && !REASONS.some((reason) => why.includes(reason)))
    findings.add('a replica exits only for a known reason', `${name} ends: ${why}`);
}
