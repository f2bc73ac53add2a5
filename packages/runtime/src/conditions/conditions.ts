/** A condition of an object's status (meta/v1), as `kubectl wait --for=condition=…` and kstatus read it. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** Machine-readable cause, one word in CamelCase: `CloudUnreachable`. */
  readonly reason: string;
  /** Human-readable cause, and what the user can do about it. */
  readonly message: string;
  /** Generation of the spec that the condition was set for. */
  readonly observedGeneration?: number;
  /** Time at which `status` changed last, RFC 3339 with seconds. */
  readonly lastTransitionTime: string;
}

/**
 * Returns the conditions with `condition` in place of the one of the same type, or at the end if there is none.
 * `lastTransitionTime` changes only when `status` changes. So setting the same condition again changes nothing and
 * causes no write.
 * @param now milliseconds since 1970
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  condition: Omit<Condition, 'lastTransitionTime'>,
  now: number,
): Condition[] {
  const all = conditions ?? [];
  const before = all.find(({ type }) => type === condition.type);
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : time(now);
  const after: Condition = { ...condition, lastTransitionTime };
  return before === undefined ? [...all, after] : all.map((each) => (each === before ? after : each));
}

/** Returns the conditions without the condition of this type. */
export function removeCondition(conditions: readonly Condition[] | undefined, type: string): Condition[] {
  return (conditions ?? []).filter((each) => each.type !== type);
}

/** Returns the condition of a type, if it is set. Accepts conditions of other projects, which may lack some fields. */
export function conditionOf<C extends Pick<Condition, 'type'>>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((each) => each.type === type);
}

/** Whether a condition is True and, if `generation` is given, was set for that generation of the spec. */
export function isTrue(
  conditions: readonly Condition[] | undefined,
  type: string,
  generation?: number,
): boolean {
  const condition = conditionOf(conditions, type);
  if (condition?.status !== 'True') return false;
  return generation === undefined || condition.observedGeneration === generation;
}

/** Formats a time without fractions of a second, as Kubernetes stores the times of conditions. */
function time(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+/, '');
}
