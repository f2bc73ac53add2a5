import { type Event, type KubeObject, keyOf } from '@vmwright/runtime';
import { ageText } from '../age.ts';
import { parseDuration } from '../settings/duration.ts';
import { defaultOf } from '../settings/flags.ts';
import { backoffMs } from '../vmdiskimage/failures.ts';
import { at, conditionAt, listAt, numberAt, textAt, timeAt } from './fields.ts';
import type { Leader } from './leader.ts';
import { problemsOf, stateOf } from './state.ts';

/** An object and the state of the cluster that an explanation is based on. */
export interface Evidence {
  readonly kind: string;
  readonly object: KubeObject;
  readonly leader: Leader;
  readonly events: readonly Event[];
  /** Objects of vmwright that the object waits for, such as the image of a VirtualMachine. */
  readonly dependencies: readonly { readonly kind: string; readonly object: KubeObject }[];
}

/** Something that blocks an object, with a message for the user. */
interface Blocker {
  /** Reason of a condition, another reason such as `NoLeader`, or the object that this object waits for. */
  readonly reason: string;
  readonly message: string;
}

/** Verdict about a node, for a GPUInfo. */
interface Verdict {
  readonly node: string;
  readonly host: string;
  readonly isSuitable: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface Explanation {
  readonly object: string;
  /** Whether something blocks the object. */
  readonly isBlocked: boolean;
  readonly blockers: readonly Blocker[];
  /** Sentence that says when the operator tries again, or that it does not. */
  readonly retry: string;
  /** Verdict per node; empty if the status lists no candidates. */
  readonly nodes: readonly Verdict[];
  readonly events: readonly { readonly reason: string; readonly note: string; readonly age: string }[];
}

/** Maximum number of events in an explanation. */
const MOST_EVENTS = 5;

/** Explains what blocks an object and when the operator tries again. @param now milliseconds since 1970 */
export function explain(evidence: Evidence, now: number): Explanation {
  const { kind, object, leader, events, dependencies } = evidence;
  const state = stateOf(object);
  const blockers = [
    ...operatorBlockers(object, leader, now),
    ...deletionBlockers(object, now),
    ...(state === 'Ready' ? [] : problemsOf(object).map(({ reason, message }) => ({ reason, message }))),
    ...dependencies.flatMap((dependency) => dependencyBlockers(dependency)),
  ];
  return {
    object: `${kind} ${keyOf(object.metadata)}`,
    isBlocked: blockers.length > 0,
    blockers,
    retry: retryOf(kind, object, blockers.length > 0, now),
    nodes: listAt(object, 'status', 'candidates').map(verdictOf),
    // Omits the warnings of an object that is not blocked: they are old and would be misleading.
    events: (blockers.length === 0 ? [] : events)
      .filter(({ type }) => type === 'Warning')
      .map((event) => ({ event, at: timeOf(event) }))
      .toSorted((a, b) => b.at - a.at)
      .slice(0, MOST_EVENTS)
      .map(({ event: { reason, note = '' }, at: time }) => ({ reason, note, age: ageText(now - time) })),
  };
}

function timeOf({ series, eventTime, metadata }: Event): number {
  return Date.parse(series?.lastObservedTime ?? eventTime ?? metadata.creationTimestamp ?? '');
}

/** Returns why the operator does not process the object: no replica leads, or the newest generation is not observed. */
function operatorBlockers(object: KubeObject, leader: Leader, now: number): readonly Blocker[] {
  const { generation = 1 } = object.metadata;
  const isSeen = numberAt(object, 'status', 'observedGeneration') === generation;
  const { holder, renewedAt, isExpired, problem } = leader;
  if (isExpired || (holder === undefined && problem === undefined)) {
    const renewed =
      renewedAt === undefined ? '' : ` The Lease was last renewed ${ageText(now - renewedAt)} ago.`;
    const message = `No replica of the operator leads.${renewed} Check that its pods run: kubectl get pods -A -l app.kubernetes.io/name=vmwright`;
    return [{ reason: 'NoLeader', message }];
  }
  if (isSeen) return [];
  const cause = problem === undefined ? 'its controller may be off (`vmwright status`)' : problem;
  return [
    {
      reason: 'NotObserved',
      message: `The operator has not processed generation ${generation} of the object; ${cause}`,
    },
  ];
}

function deletionBlockers({ metadata }: KubeObject, now: number): readonly Blocker[] {
  const { deletionTimestamp, finalizers = [] } = metadata;
  if (deletionTimestamp === undefined) return [];
  const others = finalizers.filter((finalizer) => !finalizer.startsWith('vmwright.dev/'));
  const isOurs = others.length === 0 || others.length < finalizers.length;
  const holds = [
    ...(isOurs ? ['the operator confirms that everything that it created for the object is gone'] : []),
    ...(others.length > 0 ? [`other controllers remove their finalizers: ${others.join(', ')}`] : []),
  ].join(', and ');
  return [
    {
      reason: 'Deleting',
      message: `The deletion of the object was requested ${ageText(now - Date.parse(deletionTimestamp))} ago; the object stays until ${holds}`,
    },
  ];
}

function dependencyBlockers({ kind, object }: Evidence['dependencies'][number]): readonly Blocker[] {
  if (stateOf(object) === 'Ready') return [];
  const message = conditionAt(object, 'Ready')?.message || 'it is not ready';
  const { namespace = '', name } = object.metadata;
  return [
    {
      reason: `${kind} ${namespace}/${name}`,
      message: `${message}. Explain it: vmwright why ${kind.toLowerCase()}/${name} -n ${namespace}`,
    },
  ];
}

/** Maximum back-off between two reconciles of an object, the same in every controller. */
const MAX_BACKOFF = '1 minute';

function retryOf(kind: string, object: KubeObject, isBlocked: boolean, now: number): string {
  if (!isBlocked) return 'Nothing blocks the object.';
  if (conditionAt(object, 'Paused')?.status === 'True')
    return 'The operator does not try again while the object is paused.';
  const at = nextAttempt(kind, object);
  if (at !== undefined)
    return at > now
      ? `The operator tries again at ${new Date(at).toISOString()} (in ${ageText(at - now)}).`
      : 'The operator tries again now.';
  if (conditionAt(object, 'Stalled')?.status === 'True')
    return 'The operator does not try again until the object changes or the cause is removed.';
  return `The operator tries again automatically: when something changes, or else after a back-off of at most ${MAX_BACKOFF}.`;
}

/**
 * Back-off settings of VMDiskImages: the defaults, because this program does not know the settings of the running
 * operator.
 */
const DEFAULTS = { maxBackoffMs: parseDuration(defaultOf('image-sync-max-backoff')) ?? 0 };

/** Returns the time of the next attempt in milliseconds since 1970; undefined if the status does not determine it. */
function nextAttempt(kind: string, object: KubeObject): number | undefined {
  const failures = numberAt(object, 'status', 'failureCount');
  const failedAt = timeAt(object, 'status', 'lastFailureTime');
  const isRetried = textAt(object, 'status', 'phase') === 'RetryableFailure';
  if (kind === 'VMDiskImage' && isRetried && failures !== undefined && failedAt !== undefined)
    return failedAt + backoffMs(failures, DEFAULTS);
  return timeAt(object, 'status', 'fitsFrom');
}

function verdictOf(candidate: unknown): Verdict {
  return {
    node: textAt(candidate, 'node'),
    host: textAt(candidate, 'host'),
    isSuitable: at(candidate, 'suitable') === true,
    reason: textAt(candidate, 'reason'),
    message: textAt(candidate, 'message'),
  };
}
