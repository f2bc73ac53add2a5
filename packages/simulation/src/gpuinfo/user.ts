import { GPUInfo } from '@vmwright/operator';
import type { ApiServer } from '../apiserver/api-server.ts';
import { AdminClient } from '../runtime/admin-client.ts';
import { find, isPaused, PAUSED } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import { ConfigMap, ZONE } from './kinds.ts';
import { MODELS, ZONES } from './nodes.ts';
import { isLive, LEDGER, type StoredReservations } from './reservations.ts';

/** Actions of users. When many seeds are run, each of them must occur in at least one seed. */
export const USER_ACTIONS = [
  'a request was changed',
  'a request was paused',
  'a request was deleted',
  'a request was created again',
  'a reservation was deleted by a person',
] as const;

interface Place {
  readonly namespace: 'red' | 'blue';
  readonly name: string;
}

/**
 * GPUInfos of the users. Two have the same name in different namespaces, and the order of names differs from the order
 * of creation.
 */
const PLACES: readonly [Place, ...Place[]] = [
  { namespace: 'red', name: 'train' },
  { namespace: 'blue', name: 'train' },
  { namespace: 'red', name: 'infer' },
  { namespace: 'blue', name: 'batch' },
  { namespace: 'red', name: 'query' },
  { namespace: 'blue', name: 'adapt' },
];

/** Users who create, change, pause and delete GPUInfos. */
export class User {
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #created = new Set<string>();

  constructor(simulation: Simulation, server: ApiServer) {
    this.#simulation = simulation;
    this.#server = server;
  }

  /** Schedules the creation, changes and deletion of all GPUInfos within the given number of milliseconds. */
  plan(ms: number): void {
    const { choices, schedule } = this.#simulation;
    for (const place of PLACES) {
      let at = choices.pick(ms / 3);
      const later = (act: () => void) => {
        at += choices.oneIn(3) ? choices.pick(3_000) : choices.pick(ms / 3);
        schedule.after(Math.min(at, ms), act);
      };
      schedule.after(at, () => this.#create(place));
      if (choices.oneIn(2)) later(() => this.#change(place));
      if (choices.oneIn(5)) {
        later(() => this.#pause(place));
        if (choices.oneIn(2)) later(() => this.#change(place));
        if (!choices.oneIn(3)) later(() => this.#resume(place));
      }
      if (!choices.oneIn(3)) continue;
      later(() => this.#delete(place));
      if (choices.oneIn(2)) later(() => this.#create(place));
    }
  }

  /** Deletes a random GPUInfo. */
  deleteOne(): void {
    this.#delete(this.#simulation.choices.one(PLACES));
  }

  /** Deletes the entry of a held reservation from the ConfigMap. */
  deleteReservation(reservations: StoredReservations): void {
    const held = [...reservations].flatMap(([uid, each]) => (isLive(each) ? [uid] : []));
    const [first, ...more] = held;
    if (first === undefined) return;
    const uid = this.#simulation.choices.one([first, ...more]);
    this.#count('a reservation was deleted by a person');
    this.#note(`deletes the entry of ${uid} in the ledger`);
    new AdminClient(this.#server).merge(ConfigMap, LEDGER, { data: { [uid]: null } });
  }

  /** Removes the paused annotation from all GPUInfos. */
  resumeAll(): void {
    for (const place of PLACES) this.#resume(place);
  }

  #create(place: Place): void {
    const { namespace, name } = place;
    if (this.#created.has(nameOf(place))) this.#count('a request was created again');
    this.#created.add(nameOf(place));
    const spec = this.#spec();
    this.#note(`creates ${nameOf(place)}: ${JSON.stringify(spec)}`);
    new AdminClient(this.#server, namespace).create(GPUInfo, name, { spec });
  }

  #change(place: Place): void {
    this.#count('a request was changed');
    const all = { gpuCount: null, gpuModel: null, nodeSelector: null, policy: null };
    this.#merge(place, { spec: { ...all, ...this.#spec() } });
  }

  #pause(place: Place): void {
    this.#count('a request was paused');
    this.#merge(place, { metadata: { annotations: { [PAUSED]: 'true' } } });
  }

  #resume(place: Place): void {
    const info = find(this.#server, GPUInfo, place.namespace, place.name);
    if (info !== undefined && isPaused(info))
      this.#merge(place, { metadata: { annotations: { [PAUSED]: null } } });
  }

  #delete(place: Place): void {
    this.#count('a request was deleted');
    this.#note(`deletes ${nameOf(place)}`);
    new AdminClient(this.#server, place.namespace).delete(GPUInfo, place.name);
  }

  #merge(place: Place, patch: object): void {
    this.#note(`patches ${nameOf(place)}: ${JSON.stringify(patch)}`);
    new AdminClient(this.#server, place.namespace).merge(GPUInfo, place.name, patch);
  }

  #spec(): object {
    const { choices } = this.#simulation;
    const desAccTime = choices.one([1, 2, 0, 1, 7]);
    const policy = choices.one([undefined, undefined, 'LeastMemory', 'Pack', 'Spread']);
    const more = {
      ...(policy && { policy }),
      ...(choices.oneIn(6) && { nodeSelector: { [ZONE]: choices.one(ZONES) } }),
    };
    if (choices.oneIn(5)) return { desAccTime, gpuRequired: false, ...more };
    const gpuCount = choices.oneIn(4) ? 2 : undefined;
    const gpuModel = choices.oneIn(5) ? choices.one(MODELS) : undefined;
    return {
      desAccTime,
      gpuRequired: true,
      ...(gpuCount && { gpuCount }),
      ...(gpuModel && { gpuModel }),
      ...more,
    };
  }

  #note(what: string): void {
    this.#simulation.note('user', what);
  }

  #count(what: (typeof USER_ACTIONS)[number]): void {
    this.#simulation.counts.add(what);
  }
}

function nameOf({ namespace, name }: Place): string {
  return `${namespace}/${name}`;
}
