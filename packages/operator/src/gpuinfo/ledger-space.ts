import { refOf } from '@vmwright/runtime';
import type { Reservation } from './reservation.ts';

/** Maximum size of all reservations. The API server limits a ConfigMap to 1 MiB. */
const MAX_BYTES = 900_000;
/** Maximum size of the reservations of one namespace, so that one tenant cannot use all space. */
const MAX_BYTES_PER_NAMESPACE = MAX_BYTES / 4;
/** Maximum size of a stored reservation, not counting the names of its object, node and pool. */
const BASE_BYTES = 420;
/** Maximum length of the name of a node and of a pool. */
const MAX_NAME_BYTES = 253;

/**
 * Space for reservations in the ConfigMap that stores them. Reservations that have ended count until their object is
 * deleted.
 */
export class LedgerSpace {
  readonly #sizes = new Map<string, { readonly namespace: string; readonly bytes: number }>();
  readonly #byNamespace = new Map<string, number>();
  #total = 0;

  /** Counts a reservation. It replaces an earlier reservation of the same object. */
  add(uid: string, { key, node, pool = '' }: Reservation): void {
    const { namespace = '' } = refOf(key);
    const bytes = BASE_BYTES + key.length + node.length + pool.length;
    const before = this.#sizes.get(uid);
    if (before !== undefined) this.#count(before.namespace, -before.bytes);
    this.#sizes.set(uid, { namespace, bytes });
    this.#count(namespace, bytes);
  }

  /**
   * Whether there is space for a reservation of an object, even if the names of its node and pool have maximum length.
   * @param key `namespace/name` of the object
   */
  hasRoom(uid: string, key: string): boolean {
    const { namespace = '' } = refOf(key);
    const needed = BASE_BYTES + key.length + 2 * MAX_NAME_BYTES - (this.#sizes.get(uid)?.bytes ?? 0);
    const used = this.#byNamespace.get(namespace) ?? 0;
    return this.#total + needed <= MAX_BYTES && used + needed <= MAX_BYTES_PER_NAMESPACE;
  }

  #count(namespace: string, bytes: number): void {
    this.#total += bytes;
    this.#byNamespace.set(namespace, (this.#byNamespace.get(namespace) ?? 0) + bytes);
  }
}
