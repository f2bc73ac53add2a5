import { ConfigMap, type Manager } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { ExternalSystem } from './external-system.ts';
import { numberAt, storedKey, textAt } from './fields.ts';
import { Probe, Setting, Widget } from './kinds.ts';
import { isInUse, madeOf, wantsChild } from './program.ts';

/** Returns the first difference from the converged state; undefined if there is none. */
export function unconverged(server: ApiServer, external: ExternalSystem): string | undefined {
  const children = byKey(server.objects(ConfigMap));
  const settings = byKey(server.objects(Setting));
  const widgets = byKey(server.objects(Widget));
  for (const [key, widget] of widgets) {
    const { metadata } = widget;
    if (metadata.deletionTimestamp !== undefined) return `${key} is still being deleted`;
    const child = children.get(key);
    const text = textAt(widget, 'spec', 'text') ?? '';
    const wanted = wantsChild({ spec: { text } });
    if (!wanted && child !== undefined) return `${key} has a child but must have none`;
    if (wanted && textAt(child, 'data', 'text') !== text) return `the child of ${key} has another text`;
    if (wanted && child?.metadata.ownerReferences?.[0]?.uid !== metadata.uid)
      return `the child of ${key} has another owner`;
    const setting = settings.get(key);
    const value = setting && isInUse(setting.metadata.labels) ? textAt(setting, 'spec', 'value') : undefined;
    const made = madeOf(
      { metadata, spec: { text } },
      value === undefined ? undefined : { spec: { value } },
      textAt(child, 'data', 'note'),
    );
    if (textAt(widget, 'status', 'made') !== made)
      return `status.made of ${key} is "${textAt(widget, 'status', 'made')}" instead of "${made}"`;
    if (numberAt(widget, 'status', 'observedGeneration') !== metadata.generation)
      return `the status of ${key} is for another generation`;
    const ready = textAt(widget, 'status', 'conditions', '0', 'status');
    if (ready !== (value === undefined ? 'False' : 'True'))
      return `the Ready condition of ${key} is ${ready}`;
    if (!external.isMade(metadata.uid ?? '')) return `${key} has no external resource`;
  }
  for (const [key, child] of children)
    if (!widgets.has(key) && child.metadata.ownerReferences !== undefined)
      return `ConfigMap ${key} is left over`;
  for (const probe of server.objects(Probe))
    if (numberAt(probe, 'status', 'observedGeneration') !== probe.metadata.generation)
      return `the status of ${probe.metadata.name} is for another generation`;
  return undefined;
}

/** Returns the first difference between the caches of a replica and the API server; undefined if there is none. */
export function staleCache(server: ApiServer, manager: Manager): string | undefined {
  const { caches } = manager;
  const all = [caches.get(Widget), caches.get(ConfigMap), caches.get(Probe), caches.get(Setting)];
  for (const cache of all) {
    const { kind } = cache;
    const stored = byKey(server.objects(kind));
    if (kind.plural === Setting.plural)
      for (const [key, { metadata }] of stored) if (!isInUse(metadata.labels)) stored.delete(key);
    for (const [key, { metadata }] of stored) {
      const cached = cache.get(key);
      if (cached?.metadata.resourceVersion !== metadata.resourceVersion)
        return `${kind.kind} ${key}@${metadata.resourceVersion} is cached as @${cached?.metadata.resourceVersion}`;
    }
    if (cache.size !== stored.size)
      return `${cache.size} of ${stored.size} objects of ${kind.kind} are cached`;
  }
  return undefined;
}

function byKey(objects: Iterable<StoredObject>): Map<string, StoredObject> {
  return new Map(Array.from(objects, (object) => [storedKey(object), object]));
}
