import { schema } from '@vmwright/runtime';
import { timeOf } from '../times.ts';

const { boolean, integer, literals, object, optional, string } = schema;

/** Why a reservation has ended. */
export type EndReason = 'TimePassed' | 'JobEnded';

/** A node, and GPUs of a pool, that are reserved for a GPUInfo. */
export interface Reservation {
  /** `namespace/name` of the GPUInfo. */
  readonly key: string;
  /** Generation of the spec that the reservation was made for. */
  readonly generation: number;
  readonly node: string;
  /** Id of the pool that the GPUs belong to; undefined for a node without GPUs. */
  readonly pool?: string | undefined;
  readonly gpus: number;
  /** Time of the decision, in milliseconds since 1970. */
  readonly from: number;
  /** End of the reservation, in milliseconds since 1970; undefined if the reservation has no end. */
  readonly until?: number | undefined;
  /** Whether pods of the job that uses the reservation have been observed. */
  readonly inUse?: boolean | undefined;
  /** Whether a controller may start the job again after all its pods have ended; see `JobFacts`. */
  readonly mayRestart?: boolean | undefined;
  /**
   * Time at which the job was first observed without pods, in milliseconds since 1970. Set only if the job may start
   * again.
   */
  readonly idleSince?: number | undefined;
  /**
   * Whether an earlier reservation of the object was used. Ended pods of the earlier job may still exist, and must not
   * end this reservation. So an ended job ends this reservation only if `inUse` is set.
   */
  readonly isRepeated?: boolean | undefined;
  /**
   * Set when the reservation has ended. Its GPUs are then free, and the object gets no other reservation until its spec
   * changes.
   */
  readonly ended?: { readonly at: number; readonly reason: EndReason } | undefined;
}

const time = (description: string) => string({ description, format: 'date-time' });

/** A reservation as the ConfigMap stores it. Times are RFC 3339, so that people can read them. */
const STORED = object({
  key: string(),
  generation: integer(),
  node: string(),
  pool: optional(string()),
  gpus: integer({ minimum: 0 }),
  from: time('Time of the decision.'),
  until: optional(time('End of the reservation.')),
  inUse: optional(boolean()),
  mayRestart: optional(boolean()),
  idleSince: optional(time('Time at which the job was first observed without pods.')),
  isRepeated: optional(boolean()),
  ended: optional(
    object({
      at: time('Time when the end was observed.'),
      reason: literals(['TimePassed', 'JobEnded']),
    }),
  ),
});

/** Returns the text that stores a reservation. Equal reservations have equal texts. */
export function formatReservation(reservation: Reservation): string {
  const { key, generation, node, pool, gpus, from, until, inUse, idleSince, isRepeated, ended } = reservation;
  return JSON.stringify({
    key,
    generation,
    node,
    pool,
    gpus,
    from: timeOf(from),
    until: until === undefined ? undefined : timeOf(until),
    inUse,
    mayRestart: reservation.mayRestart,
    idleSince: idleSince === undefined ? undefined : timeOf(idleSince),
    isRepeated,
    ended: ended && { at: timeOf(ended.at), reason: ended.reason },
  });
}

/**
 * Returns the reservation that a text stores; undefined if the text is not a valid reservation, for example
 * after a manual edit.
 */
export function parseReservation(text: string): Reservation | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const checked = schema.admit(STORED, value);
  if (!checked.ok) return undefined;
  const { from, until, idleSince, ended, ...rest } = checked.value;
  // The schema accepts invalid times such as 25:00.
  if ([from, until, idleSince, ended?.at].some((text) => Number.isNaN(Date.parse(text ?? from))))
    return undefined;
  return {
    ...rest,
    from: Date.parse(from),
    ...(until !== undefined && { until: Date.parse(until) }),
    ...(idleSince !== undefined && { idleSince: Date.parse(idleSince) }),
    ...(ended !== undefined && { ended: { ...ended, at: Date.parse(ended.at) } }),
  };
}
