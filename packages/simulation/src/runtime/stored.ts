import type { ApiServer } from '../apiserver/api-server.ts';
import type { Change } from '../apiserver/store.ts';
import type { Counts } from '../world/counts.ts';
import type { Findings } from './findings.ts';
import { ConfigMap, FOREIGN_FINALIZER, Widget } from './kinds.ts';
import type { Life } from './life.ts';
import { at, hasFinalizer, numberAt, textAt } from './read.ts';
import type { Wire } from './wire.ts';

/** What holds for every change that is stored: status does not go back, and what is others' stays as it is. */
export function watchStored(server: ApiServer, wire: Wire<Life>, findings: Findings): void {
  server.listen((change) => {
    const { plural } = change.resource.kind;
    if (plural === Widget.plural) widgetChanged(change, wire.current?.sender, findings);
    if (plural === ConfigMap.plural && wire.current !== undefined) childChanged(change, findings);
  });
}

/** Who acts on what he knows of the one before would do it harm. */
export const CAME_BACK = 'an object was re-created under the same name';

export function countReturns(server: ApiServer, counts: Counts): void {
  const gone = new Set<string>();
  server.listen(({ resource, key, before, after }) => {
    if (resource.kind.plural !== Widget.plural) return;
    if (after === undefined) gone.add(key);
    else if (before === undefined && gone.has(key)) counts.add(CAME_BACK);
  });
}

function widgetChanged({ key, before, after }: Change, sender: Life | undefined, findings: Findings): void {
  const [was, is] = [before?.object, after?.object];
  if (was === undefined || is === undefined) return;
  const [old, now] = [was, is].map((object) => numberAt(object, 'status', 'observedGeneration'));
  if ((now ?? 0) < (old ?? 0))
    findings.add('status never goes back', `observedGeneration of ${key} goes from ${old} to ${now}`);
  if (sameReadiness(was, is) && transitionOf(was) !== transitionOf(is))
    findings.add('conditions', `${key} is told to have changed at ${transitionOf(is)}, and has not`);
  if (sender === undefined) return;
  if (hasFinalizer(was, FOREIGN_FINALIZER) && !hasFinalizer(is, FOREIGN_FINALIZER))
    findings.add("other owners' finalizers are kept", `${sender.name} takes ${FOREIGN_FINALIZER} off ${key}`);
  for (const part of ['labels', 'annotations'])
    if (JSON.stringify(at(was, 'metadata', part)) !== JSON.stringify(at(is, 'metadata', part)))
      findings.add("other owners' fields are kept", `${sender.name} changes the ${part} of ${key}`);
  if (JSON.stringify(was.spec) !== JSON.stringify(is.spec))
    findings.add("other owners' fields are kept", `${sender.name} changes the spec of ${key}`);
}

function childChanged({ key, before, after }: Change, findings: Findings): void {
  if (before === undefined || after === undefined) return;
  if (textAt(before.object, 'data', 'note') !== textAt(after.object, 'data', 'note'))
    findings.add("other owners' fields are kept", `the note of ConfigMap ${key} is changed by a replica`);
}

function sameReadiness(was: unknown, is: unknown): boolean {
  const [old, now] = [was, is].map((object) => textAt(object, 'status', 'conditions', '0', 'status'));
  return old !== undefined && old === now;
}

function transitionOf(object: unknown): string | undefined {
  return textAt(object, 'status', 'conditions', '0', 'lastTransitionTime');
}
