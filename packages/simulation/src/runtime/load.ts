import type { Choices } from '../world/choices.ts';
import type { Hand } from './hand.ts';
import { ConfigMap, IN_USE, NOTE, Probe, Setting, Widget } from './kinds.ts';

export const WIDGETS = ['w0', 'w1', 'w2'] as const;
/** The text of a widget that wants no child. */
const WITHOUT_CHILD = 'v3';
export const PROBES = ['p0', 'p1'] as const;

/** Puts an object there whose reconciles fail. */
export function probe(hand: Hand, name: string): void {
  hand.apply(Probe, name, { spec: { round: 0 } });
}

/** Changes something, as anybody might. */
export function change(hand: Hand, choices: Choices, round: number): void {
  const name = choices.one(WIDGETS);
  const value = `v${round}`;
  // One of few: what comes back to where it was is easily taken for what nobody has touched.
  const again = choices.one(['x', 'y']);
  switch (choices.pick(13)) {
    case 0:
    case 1:
    case 2:
      hand.apply(Widget, name, { spec: { text: value } });
      break;
    case 3:
      hand.apply(Widget, name, { spec: { text: value }, metadata: { annotations: { [NOTE]: value } } });
      break;
    case 4:
      hand.delete(Widget, name, choices.oneIn(3) ? 'Foreground' : 'Background');
      break;
    case 5:
      hand.hold(Widget, name, choices.oneIn(2));
      break;
    case 6:
      hand.apply(Setting, name, { spec: { value }, metadata: { labels: IN_USE } });
      break;
    case 7:
      hand.merge(Setting, name, { metadata: { labels: { use: choices.one(['no', 'yes']) } } });
      break;
    case 8:
      hand.delete(Setting, name);
      break;
    case 9:
      hand.merge(ConfigMap, name, { data: { note: again } });
      break;
    case 10:
      hand.merge(Widget, name, { spec: { text: value } });
      hand.merge(ConfigMap, name, { data: { note: again } });
      break;
    case 11:
      hand.delete(ConfigMap, name);
      break;
    case 12:
      hand.merge(ConfigMap, name, { data: { text: 'by another' } });
      break;
  }
}

/** While lists are on their way: children go that are still in them, and what comes anew looks as it did before. */
export function changeWhileListing(hand: Hand, choices: Choices): void {
  const name = choices.one(WIDGETS);
  hand.merge(Widget, name, { spec: { text: choices.one([WITHOUT_CHILD, 'v40']) } });
  if (!choices.oneIn(2)) return;
  hand.delete(Setting, name);
  hand.apply(Setting, name, { spec: { value: `v${choices.pick(100)}` }, metadata: { labels: IN_USE } });
}

/** A stranger's doings on failing objects. */
export function touch(hand: Hand, name: string, round: number): void {
  hand.merge(Probe, name, { metadata: { annotations: { [NOTE]: `t${round}` } } });
}

/** Changes of all objects, in calm times. */
export function finale(hand: Hand): void {
  for (const name of WIDGETS) {
    hand.hold(Widget, name, false);
    hand.apply(Widget, name, { spec: { text: 'finale' } });
    hand.apply(Setting, name, { spec: { value: 'finale' }, metadata: { labels: IN_USE } });
  }
  for (const name of PROBES) hand.merge(Probe, name, { spec: { round: 1 } });
}

/** One change that concerns a widget, each of another kind of which it must hear. */
export function changeQuietly(hand: Hand, choices: Choices, name: string): void {
  choices.one([
    () => hand.delete(Setting, name),
    () => hand.merge(Setting, name, { metadata: { labels: { use: 'no' } } }),
    () => hand.merge(Setting, name, { spec: { value: 'last' } }),
    () => hand.merge(ConfigMap, name, { data: { note: 'last' } }),
    () => hand.delete(ConfigMap, name),
    () => hand.merge(Widget, name, { spec: { text: WITHOUT_CHILD } }),
    () => hand.merge(Widget, name, { metadata: { annotations: { [NOTE]: 'last' } } }),
  ])();
}
