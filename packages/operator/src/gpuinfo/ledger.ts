import type { Client } from '@vmwright/runtime';
import { type Entries, type EntryChanges, type EntryStore, entryStore } from '../ledger/entry-store.ts';
import type { Reservations } from './allocation.ts';
import type { JobFacts } from './candidate.ts';
import { lookUpJob } from './job-lookup.ts';
import { formatReservation, parseReservation, type Reservation } from './reservation.ts';
import { GPUInfo } from './resource.ts';

/** ConfigMap in the operator's namespace with all reservations: UID of the GPUInfo → reservation as JSON. */
export const RESERVATIONS_NAME = 'vmwright-gpu-reservations';

/** Access to the ConfigMap with the reservations. Also looks up GPUInfos and their jobs in the API server. */
export interface ReservationStore extends EntryStore {
  /** Returns the job of the GPUInfo with this key and UID according to the API server; undefined if there is none. */
  findJob(key: string, uid: string): Promise<JobFacts | undefined>;
}

/**
 * Returns access to the reservations that are stored in a namespace.
 * @param client client of a reconcile; its writes fail after the replica has lost leadership
 */
export function reservationStore(client: Client, namespace: string): ReservationStore {
  const entries = entryStore(client, { namespace, name: RESERVATIONS_NAME }, GPUInfo);
  return { ...entries, findJob: (key, uid) => lookUpJob(client, key, uid) };
}

/** Returns the reservations in the ledger. Skips invalid entries, for example after a manual edit. */
export function reservationsIn({ values }: Entries): Reservations {
  const reservations = new Map<string, Reservation>();
  for (const [uid, text] of values) {
    const reservation = parseReservation(text);
    if (reservation !== undefined) reservations.set(uid, reservation);
  }
  return reservations;
}

/** Returns the changes that make the entries equal to these reservations; undefined if they are equal already. */
export function changesTo({ values }: Entries, reservations: Reservations): EntryChanges | undefined {
  const changes: Record<string, string | null> = {};
  for (const uid of values.keys()) if (!reservations.has(uid)) changes[uid] = null;
  for (const [uid, reservation] of reservations) {
    const text = formatReservation(reservation);
    if (values.get(uid) !== text) changes[uid] = text;
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}
