import { ConfigMap } from '@vmwright/runtime';
import type { Choices } from '../world/choices.ts';
import type { AdminClient } from './admin-client.ts';
import { IN_USE, NOTE, Probe, Setting, Widget } from './kinds.ts';

export const WIDGETS = ['w0', 'w1', 'w2'] as const;
/** Value of `spec.text` for which the controller deletes the widget's ConfigMap (see `wantsChild`). */
const WITHOUT_CHILD = 'v3';
export const PROBES = ['p0', 'p1'] as const;

/** Creates a probe. Its reconciles fail during the fault phase. */
export function probe(admin: AdminClient, name: string): void {
  admin.apply(Probe, name, { spec: { round: 0 } });
}

/** Makes one random change to a widget, its setting or its ConfigMap, as users and other controllers do. */
export function change(admin: AdminClient, choices: Choices, round: number): void {
  const name = choices.one(WIDGETS);
  const value = `v${round}`;
  // Uses only two values, so that objects often return to an earlier state. A controller could mistake this for no
  // change.
  const repeated = choices.one(['x', 'y']);
  switch (choices.pick(13)) {
    case 0:
    case 1:
    case 2:
      admin.apply(Widget, name, { spec: { text: value } });
      break;
    case 3:
      admin.apply(Widget, name, { spec: { text: value }, metadata: { annotations: { [NOTE]: value } } });
      break;
    case 4:
      admin.delete(Widget, name, choices.oneIn(3) ? 'Foreground' : 'Background');
      break;
    case 5:
      admin.hold(Widget, name, choices.oneIn(2));
      break;
    case 6:
      admin.apply(Setting, name, { spec: { value }, metadata: { labels: IN_USE } });
      break;
    case 7:
      admin.merge(Setting, name, { metadata: { labels: { use: choices.one(['no', 'yes']) } } });
      break;
    case 8:
      admin.delete(Setting, name);
      break;
    case 9:
      admin.merge(ConfigMap, name, { data: { note: repeated } });
      break;
    case 10:
      admin.merge(Widget, name, { spec: { text: value } });
      admin.merge(ConfigMap, name, { data: { note: repeated } });
      break;
    case 11:
      admin.delete(ConfigMap, name);
      break;
    case 12:
      admin.merge(ConfigMap, name, { data: { text: 'by another' } });
      break;
  }
}

/**
 * Changes a widget while the caches list their objects after a restart of the API server. The change may make
 * the controller delete a ConfigMap that the list still contains. In half of the cases, this function also deletes
 * the setting of the widget and creates it again.
 */
export function changeWhileListing(admin: AdminClient, choices: Choices): void {
  const name = choices.one(WIDGETS);
  admin.merge(Widget, name, { spec: { text: choices.one([WITHOUT_CHILD, 'v40']) } });
  if (!choices.oneIn(2)) return;
  admin.delete(Setting, name);
  admin.apply(Setting, name, { spec: { value: `v${choices.pick(100)}` }, metadata: { labels: IN_USE } });
}

/** Annotates a failing probe, as a third party might. */
export function touch(admin: AdminClient, name: string, round: number): void {
  admin.merge(Probe, name, { metadata: { annotations: { [NOTE]: `t${round}` } } });
}

/** Changes all widgets, settings and probes. Called after the faults have stopped. */
export function finale(admin: AdminClient): void {
  for (const name of WIDGETS) {
    admin.hold(Widget, name, false);
    admin.apply(Widget, name, { spec: { text: 'finale' } });
    admin.apply(Setting, name, { spec: { value: 'finale' }, metadata: { labels: IN_USE } });
  }
  for (const name of PROBES) admin.merge(Probe, name, { spec: { round: 1 } });
}

/** Makes one random change that the widget's controller must notice through one of its watches. */
export function changeQuietly(admin: AdminClient, choices: Choices, name: string): void {
  choices.one([
    () => admin.delete(Setting, name),
    () => admin.merge(Setting, name, { metadata: { labels: { use: 'no' } } }),
    () => admin.merge(Setting, name, { spec: { value: 'last' } }),
    () => admin.merge(ConfigMap, name, { data: { note: 'last' } }),
    () => admin.delete(ConfigMap, name),
    () => admin.merge(Widget, name, { spec: { text: WITHOUT_CHILD } }),
    () => admin.merge(Widget, name, { metadata: { annotations: { [NOTE]: 'last' } } }),
  ])();
}
