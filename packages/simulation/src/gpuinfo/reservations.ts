import type { ApiServer } from '../apiserver/api-server.ts';
import { fieldAt, isJson } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { numberAt, onChange, textAt } from '../scenario/stored-objects.ts';
import type { Sent, Traffic } from '../scenario/traffic.ts';
import { ConfigMap } from './kinds.ts';

/** A reservation as stored in the ConfigMap. Times are in milliseconds since 1970. */
export interface StoredReservation {
  readonly key: string;
  readonly generation: number;
  readonly node: string;
  readonly pool: string | undefined;
  readonly gpus: number;
  readonly until: number | undefined;
  readonly inUse: boolean;
  /** Reason for which the reservation ended; undefined while it is held. */
  readonly ended: string | undefined;
}

/** A reservation that is held. */
interface LiveReservation extends StoredReservation {
  readonly ended: undefined;
}

/** Reservations by UID of the GPUInfo. */
export type StoredReservations = ReadonlyMap<string, StoredReservation>;

type Listener = (before: StoredReservations, after: StoredReservations, sent: Sent | undefined) => void;

/** ConfigMap with the reservations. */
export const LEDGER = 'vmwright-gpu-reservations';
const NONE: StoredReservations = new Map();

/** Whether the request writes the ConfigMap with the reservations. */
export function isLedgerWrite({ path }: Sent): boolean {
  return path.includes('/configmaps');
}

/** All versions of the ConfigMap with the reservations. */
export class ReservationHistory {
  readonly #versions = new Map<string, StoredReservations>();
  readonly #listeners: Listener[] = [];
  #current = NONE;

  constructor(server: ApiServer, traffic: Traffic) {
    onChange(server, ConfigMap, (_, after, { key }) => {
      if (!key.endsWith(`/${LEDGER}`)) return;
      const before = this.#current;
      this.#current = after === undefined ? NONE : reservationsIn(after);
      this.#versions.set(after?.metadata.resourceVersion ?? '', this.#current);
      if (traffic.arriving === undefined) return; // a person, not the operator, changed the ConfigMap
      for (const notify of this.#listeners) notify(before, this.#current, traffic.arriving);
    });
  }

  get current(): StoredReservations {
    return this.#current;
  }

  /** Calls the listener after each write of the reservations by the operator. */
  listen(listener: Listener): void {
    this.#listeners.push(listener);
  }

  /**
   * Returns the reservations before and after a write request, assuming that the server accepts it. Undefined if the
   * request changes no reservation.
   */
  decision(
    sent: Sent,
  ): { readonly before: StoredReservations; readonly after: StoredReservations } | undefined {
    if (!isLedgerWrite(sent) || sent.body === undefined) return undefined;
    const body: unknown = JSON.parse(sent.body);
    const changes = fieldAt(body, ['data']);
    if (!isJson(changes)) return undefined;
    const version = textAt(body, 'metadata', 'resourceVersion');
    const before = version === undefined ? this.#current : (this.#versions.get(version) ?? NONE);
    const after = new Map(before);
    for (const [uid, text] of Object.entries(changes)) {
      const reservation = typeof text === 'string' ? parsed(text) : undefined;
      if (reservation === undefined) after.delete(uid);
      else after.set(uid, reservation);
    }
    return { before, after };
  }
}

function reservationsIn(ledger: StoredObject): StoredReservations {
  const data = fieldAt(ledger, ['data']);
  const all = new Map<string, StoredReservation>();
  for (const [uid, text] of Object.entries(isJson(data) ? data : {})) {
    const reservation = parsed(String(text));
    if (reservation !== undefined) all.set(uid, reservation);
  }
  return all;
}

function parsed(text: string): StoredReservation | undefined {
  const value: unknown = JSON.parse(text);
  const [key, node] = [textAt(value, 'key'), textAt(value, 'node')];
  if (key === undefined || node === undefined) return undefined;
  const until = textAt(value, 'until');
  return {
    key,
    node,
    pool: textAt(value, 'pool'),
    generation: numberAt(value, 'generation') ?? 0,
    gpus: numberAt(value, 'gpus') ?? 0,
    until: until === undefined ? undefined : Date.parse(until),
    inUse: fieldAt(value, ['inUse']) === true,
    ended: textAt(value, 'ended', 'reason'),
  };
}

/** Whether the reservation is held: it exists and has not ended. */
export function isLive(reservation: StoredReservation | undefined): reservation is LiveReservation {
  return reservation !== undefined && reservation.ended === undefined;
}
