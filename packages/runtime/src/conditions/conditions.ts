/** A condition of an object's status, as `kubectl wait --for=condition=…` and kstatus read it (meta/v1). */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** One word for programs: `CloudUnreachable`. */
  readonly reason: string;
  /** A sentence for people: what is so, and what to do about it. */
  readonly message: string;
  /** Of the spec that this was said about. */
  readonly observedGeneration?: number;
  /** When the status became what it is. */
  readonly lastTransitionTime: string;
}

/**
 * The conditions with this one set: in the place of the one of its type, or last. The time of the transition stays where
 * the status does, so that saying the same again changes nothing, and nothing is written.
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

/** The conditions without the one of this type. */
export function removeCondition(conditions: readonly Condition[] | undefined, type: string): Condition[] {
  return (conditions ?? []).filter((each) => each.type !== type);
}

/** The condition of a type, if there is one. */
export function conditionOf(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find((each) => each.type === type);
}

/** Whether a condition is True, and was said about this generation of the spec. */
export function isTrue(
  conditions: readonly Condition[] | undefined,
  type: string,
  generation?: number,
): boolean {
  const condition = conditionOf(conditions, type);
  if (condition?.status !== 'True') return false;
  return generation === undefined || condition.observedGeneration === generation;
}

/** Kubernetes keeps these times to the second. */
function time(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+/, '');
}
