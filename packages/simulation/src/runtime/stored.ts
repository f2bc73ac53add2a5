import { ConfigMap } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { Change } from '../apiserver/store.ts';
import type { Counts } from '../world/counts.ts';
import { at, hasFinalizer, numberAt, textAt } from './fields.ts';
import { FOREIGN_FINALIZER, Widget } from './kinds.ts';
import type { Replica } from './replica.ts';
import type { Violations } from './violations.ts';
import type { Wire } from './wire.ts';

/**
 * Checks every stored change of widgets and their ConfigMaps: observedGeneration never decreases,
 * lastTransitionTime changes only with the condition's status, and replicas do not change fields that other clients
 * own.
 */
export function checkStored(server: ApiServer, wire: Wire<Replica>, violations: Violations): void {
  server.listen((change) => {
    const { plural } = change.resource.kind;
    if (plural === Widget.plural) widgetChanged(change, wire.current?.sender, violations);
    if (plural === ConfigMap.plural && wire.current !== undefined) childChanged(change, violations);
  });
}

/**
 * Counter of objects that were re-created under the same name. A replica that still acts on the deleted object would
 * harm the new one.
 */
export const RECREATED = 'an object was re-created under the same name';

export function countRecreations(server: ApiServer, counts: Counts): void {
  const gone = new Set<string>();
  server.listen(({ resource, key, before, after }) => {
    if (resource.kind.plural !== Widget.plural) return;
    if (after === undefined) gone.add(key);
    else if (before === undefined && gone.has(key)) counts.add(RECREATED);
  });
}

function widgetChanged(
  { key, before, after }: Change,
  sender: Replica | undefined,
  violations: Violations,
): void {
  const [was, is] = [before?.object, after?.object];
  if (was === undefined || is === undefined) return;
  const [old, now] = [was, is].map((object) => numberAt(object, 'status', 'observedGeneration'));
  if ((now ?? 0) < (old ?? 0))
    violations.add('status never goes back', `observedGeneration of ${key} goes from ${old} to ${now}`);
  if (sameReadiness(was, is) && transitionOf(was) !== transitionOf(is))
    violations.add(
      'lastTransitionTime changes only with the status',
      `${key} has the new lastTransitionTime ${transitionOf(is)}`,
    );
  if (sender === undefined) return;
  if (hasFinalizer(was, FOREIGN_FINALIZER) && !hasFinalizer(is, FOREIGN_FINALIZER))
    violations.add(
      "other owners' finalizers are kept",
      `${sender.name} removes ${FOREIGN_FINALIZER} from ${key}`,
    );
  for (const part of ['labels', 'annotations'])
    if (JSON.stringify(at(was, 'metadata', part)) !== JSON.stringify(at(is, 'metadata', part)))
      violations.add("other owners' fields are kept", `${sender.name} changes the ${part} of ${key}`);
  if (JSON.stringify(was.spec) !== JSON.stringify(is.spec))
    violations.add("other owners' fields are kept", `${sender.name} changes the spec of ${key}`);
}

function childChanged({ key, before, after }: Change, violations: Violations): void {
  if (before === undefined || after === undefined) return;
  if (textAt(before.object, 'data', 'note') !== textAt(after.object, 'data', 'note'))
    violations.add("other owners' fields are kept", `the note of ConfigMap ${key} is changed by a replica`);
}

function sameReadiness(was: unknown, is: unknown): boolean {
  const [old, now] = [was, is].map((object) => textAt(object, 'status', 'conditions', '0', 'status'));
  return old !== undefined && old === now;
}

function transitionOf(object: unknown): string | undefined {
  return textAt(object, 'status', 'conditions', '0', 'lastTransitionTime');
}
