import { type KubeObject, keyOf } from '@vmwright/runtime';
import { conditionAt, textAt } from './fields.ts';
import { STATES, type State, stateOf } from './state.ts';

/** All objects of a kind, as far as they can be listed. */
export interface KindObjects {
  readonly kind: string;
  readonly items: readonly KubeObject[];
  readonly problem?: string;
}

export interface KindCounts {
  readonly kind: string;
  readonly total: number;
  readonly states: Readonly<Record<State, number>>;
  /** Why the objects could not be listed. */
  readonly problem?: string | undefined;
}

interface Backend {
  readonly name: string;
  readonly isAvailable: boolean;
  readonly message: string;
}

/** Objects with the same problem. */
export interface Attention {
  readonly kind: string;
  readonly state: State;
  readonly reason: string;
  readonly message: string;
  /** `namespace/name` of the objects. */
  readonly objects: readonly string[];
  /** Time at which the first of the objects got the problem, RFC 3339; empty if it is not known. */
  readonly since: string;
}

/** State of the system according to its objects. */
export interface Summary {
  readonly kinds: readonly KindCounts[];
  readonly backends: readonly Backend[];
  readonly attention: readonly Attention[];
}

/** @param now milliseconds since 1970 */
export function summarize(kinds: readonly KindObjects[], now: number): Summary {
  return {
    kinds: kinds.map(({ kind, items, problem }) => ({
      kind,
      total: items.length,
      states: countStates(items),
      ...(problem !== undefined && { problem }),
    })),
    backends: backendsOf(kinds),
    attention: attentionOf(kinds, now),
  };
}

function countStates(items: readonly KubeObject[]): Readonly<Record<State, number>> {
  const counts = { Ready: 0, Progressing: 0, Stalled: 0, Unknown: 0, Unseen: 0, Paused: 0, Deleting: 0 };
  for (const item of items) counts[stateOf(item)]++;
  return counts;
}

/** Conditions that report whether a backend is available, each with the name of that backend. */
const AVAILABILITY = [
  { type: 'CloudAvailable', nameOf: () => 'cloud' },
  {
    type: 'VCenterAvailable',
    nameOf: (object: KubeObject) => `vCenter ${textAt(object, 'status', 'vcenter') || '-'}`,
  },
] as const;

function backendsOf(kinds: readonly KindObjects[]): readonly Backend[] {
  const backends = new Map<string, Backend>();
  for (const object of kinds.flatMap(({ items }) => items))
    for (const { type, nameOf } of AVAILABILITY) {
      const condition = conditionAt(object, type);
      if (condition === undefined) continue;
      const [name, isAvailable] = [nameOf(object), condition.status === 'True'];
      // One object that cannot use the backend is enough to report the outage.
      if (isAvailable && backends.has(name)) continue;
      backends.set(name, { name, isAvailable, message: isAvailable ? '' : condition.message });
    }
  return [...backends.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Time after which an object in the state `Deleting`, `Unseen` or `Progressing` needs attention. */
const SLOW_MS = 5 * 60_000;

function attentionOf(kinds: readonly KindObjects[], now: number): readonly Attention[] {
  const groups = new Map<string, Attention>();
  for (const { kind, items } of kinds)
    for (const object of items) {
      const found = concernOf(kind, object, now);
      if (found === undefined) continue;
      const key = JSON.stringify([kind, found.state, found.reason, found.message]);
      const known = groups.get(key);
      groups.set(
        key,
        known === undefined
          ? found
          : {
              ...known,
              objects: [...known.objects, ...found.objects],
              since: known.since === '' || found.since < known.since ? found.since : known.since,
            },
      );
    }
  const urgency = ({ state }: Attention) => URGENCY.indexOf(state);
  return [...groups.values()].toSorted(
    (a, b) => urgency(a) - urgency(b) || b.objects.length - a.objects.length,
  );
}

const URGENCY: readonly State[] = [
  'Stalled',
  'Unknown',
  'Deleting',
  'Unseen',
  'Progressing',
  'Paused',
  'Ready',
];

/** Returns why an object needs attention; undefined if it does not. */
function concernOf(kind: string, object: KubeObject, now: number): Attention | undefined {
  const state = stateOf(object);
  if (state === 'Ready') return undefined;
  const { creationTimestamp = '', deletionTimestamp, generation } = object.metadata;
  const ready = conditionAt(object, state === 'Paused' ? 'Paused' : 'Ready');
  const since = deletionTimestamp ?? ready?.lastTransitionTime ?? creationTimestamp;
  const isUrgent = state === 'Stalled' || state === 'Unknown' || state === 'Paused';
  if (!isUrgent && now - Date.parse(since) < SLOW_MS) return undefined;
  const unseen = `the operator has not processed generation ${generation ?? 1}; check that it runs and that its controller is on`;
  return {
    kind,
    state,
    since,
    objects: [keyOf(object.metadata)],
    reason: state === 'Unseen' ? 'NotObserved' : (ready?.reason ?? ''),
    message: state === 'Unseen' ? unseen : (ready?.message ?? ''),
  };
}

/** Returns `Ready` and the states that at least one object has, in the order of `STATES`. */
export function usedStates(kinds: readonly KindCounts[]): readonly State[] {
  return STATES.filter((state) => state === 'Ready' || kinds.some(({ states }) => states[state] > 0));
}
