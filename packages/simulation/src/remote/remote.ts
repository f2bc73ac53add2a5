import { isJson, type Json } from '../apiserver/json.ts';
import { type FaultRates, REQUEST_FAULTS, USUAL_FAULTS } from '../world/faults.ts';
import type { BufferedResponse, ModelRequest, ModelResponse, ModelServer } from '../world/server.ts';
import type { Simulation } from '../world/simulation.ts';
import { EPOCH_MS } from '../world/world.ts';
import type { MachineDraft, RemoteMachine } from './machine.ts';

export const REMOTE = 'https://remote.simulated';

/**
 * Fault rates of the remote backend, higher than the API server's. Late requests are the most frequent fault, because
 * they do the most harm.
 */
export const REMOTE_FAULTS: FaultRates = {
  ...USUAL_FAULTS,
  request: 5,
  requestFaults: [...REQUEST_FAULTS, 'late', 'late', 'answer lost'],
};

/** Clock, timers and random behaviour of the model. */
export interface RemoteEnvironment {
  /** Milliseconds since 1970. */
  now(): number;
  after(ms: number, act: () => void): void;
  /** Time it takes to create or to wipe a machine. */
  diskMs(): number;
  /** Age of the state that a list shows. */
  lagMs(): number;
  /** Adds an entry to the trace. */
  note(what: string): void;
}

/** A change of a machine. `before` is undefined for a created machine, `after` for a deleted one. */
export interface RemoteChange {
  readonly atMs: number;
  readonly before: RemoteMachine | undefined;
  readonly after: RemoteMachine | undefined;
}

const MACHINE = /^\/machines\/([^/?]+)$/;
const KEY = /^\/keys\/([^/?]+)$/;

/**
 * Model of a generic backend with a REST API and the weaknesses of real backends. Creating and wiping a machine take
 * time. The key of a machine is free again once the machine is gone.
 * - `POST /machines` creates a machine. The body may contain an idempotency key.
 * - `GET /machines/<id>` and `GET /keys/<key>` return a machine.
 * - `GET /machines` lists the machines. The list may be some seconds old.
 * - `PATCH /machines/<id>` changes the size of a machine.
 * - `DELETE /machines/<id>` deletes a machine.
 */
export class Remote implements ModelServer {
  readonly #environment: RemoteEnvironment;
  readonly #token: string;
  readonly #machines = new Map<string, RemoteMachine>();
  readonly #history: RemoteChange[] = [];
  readonly #listeners: ((change: RemoteChange) => void)[] = [];
  #ids = 0;

  /** @param token bearer token that every request must carry */
  constructor(environment: RemoteEnvironment, token: string) {
    this.#environment = environment;
    this.#token = token;
  }

  /** The current machines. */
  get machines(): ReadonlyMap<string, RemoteMachine> {
    return this.#machines;
  }

  /** All changes in order. */
  get history(): readonly RemoteChange[] {
    return this.#history;
  }

  listen(listener: (change: RemoteChange) => void): void {
    this.#listeners.push(listener);
  }

  /** Returns the machines as of a moment in the past. */
  at(ms: number): readonly RemoteMachine[] {
    const then = new Map(this.#machines);
    for (const { atMs, before, after } of this.#history.toReversed()) {
      if (atMs <= ms) break;
      if (before !== undefined) then.set(before.id, before);
      else if (after !== undefined) then.delete(after.id);
    }
    return [...then.values()];
  }

  /** Adds a ready machine, as another client would. */
  add(draft: MachineDraft): RemoteMachine {
    const machine = this.#newMachine(draft, 'ready');
    this.#put(undefined, machine);
    return machine;
  }

  receive({ method, path, headers, body }: ModelRequest): ModelResponse {
    if (headers.authorization !== `Bearer ${this.#token}`)
      return errorResponse(401, 'invalid or missing bearer token');
    const id = MACHINE.exec(path)?.[1];
    if (id !== undefined) return this.#one(method, id, body);
    const key = KEY.exec(path)?.[1];
    if (key !== undefined && method === 'GET')
      return found(this.#byKey(key), `no machine with the key ${key}`);
    if (path !== '/machines') return errorResponse(404, `no such path: ${path}`);
    if (method === 'GET') return this.#list();
    return method === 'POST' ? this.#create(body) : errorResponse(405, `${method} is not allowed on ${path}`);
  }

  reject(status: 429 | 500): BufferedResponse {
    return errorResponse(status, status === 429 ? 'slow down' : 'out of order');
  }

  #one(method: string, id: string, body: string | undefined): BufferedResponse {
    const machine = this.#machines.get(id);
    if (machine === undefined) return errorResponse(404, `no machine ${id}`);
    if (method === 'GET') return jsonResponse(200, machine);
    if (method === 'DELETE') return this.#delete(machine);
    if (method !== 'PATCH') return errorResponse(405, `${method} is not allowed on a machine`);
    if (machine.state !== 'ready') return errorResponse(409, `${id} is ${machine.state}`);
    const { size } = parsed(body);
    if (typeof size !== 'number') return errorResponse(422, 'size must be a number');
    if (size !== machine.size) this.#put(machine, { ...machine, size });
    return jsonResponse(200, this.#machines.get(id));
  }

  #create(body: string | undefined): BufferedResponse {
    const draft = draftIn(parsed(body));
    if (draft === undefined) return errorResponse(422, 'size is required and must be a number');
    const known = draft.key === undefined ? undefined : this.#byKey(draft.key);
    if (known !== undefined) return jsonResponse(200, known);
    const machine = this.#newMachine(draft, 'creating');
    this.#put(undefined, machine);
    this.#environment.after(this.#environment.diskMs(), () => {
      const now = this.#machines.get(machine.id);
      if (now?.state === 'creating') this.#put(now, { ...now, state: 'ready' });
    });
    return jsonResponse(201, machine);
  }

  #delete(machine: RemoteMachine): BufferedResponse {
    if (machine.state === 'deleting') return jsonResponse(202, machine);
    const deleting: RemoteMachine = { ...machine, state: 'deleting' };
    this.#put(machine, deleting);
    this.#environment.after(this.#environment.diskMs(), () => this.#put(deleting, undefined));
    return jsonResponse(202, deleting);
  }

  #list(): BufferedResponse {
    const lag = this.#environment.lagMs();
    const now = this.#environment.now();
    const items = lag === 0 ? [...this.#machines.values()] : this.at(now - lag);
    return jsonResponse(200, { now, items });
  }

  #byKey(key: string): RemoteMachine | undefined {
    for (const machine of this.#machines.values()) if (machine.key === key) return machine;
    return undefined;
  }

  #newMachine({ size, owner, key }: MachineDraft, state: RemoteMachine['state']): RemoteMachine {
    this.#ids += 1;
    const createdMs = this.#environment.now();
    return { id: `m-${this.#ids}`, size, state, ...(owner && { owner }), ...(key && { key }), createdMs };
  }

  #put(before: RemoteMachine | undefined, after: RemoteMachine | undefined): void {
    if (after !== undefined) this.#machines.set(after.id, after);
    else if (before !== undefined) this.#machines.delete(before.id);
    const change = { atMs: this.#environment.now(), before, after };
    this.#history.push(change);
    const what = after === undefined ? 'is gone' : `is ${after.state}, size ${after.size}`;
    this.#environment.note(
      `${(after ?? before)?.id} of ${(after ?? before)?.owner?.uid ?? 'others'} ${what}`,
    );
    for (const listener of this.#listeners) listener(change);
  }
}

/** Creates a backend and registers it on the simulated network. */
export function startRemote(simulation: Simulation, token: string): Remote {
  const { schedule, choices, network, counts } = simulation;
  const remote = new Remote(
    {
      now: () => EPOCH_MS + schedule.now,
      after: (ms, act) => void schedule.after(ms, act),
      diskMs: () => choices.delay(1_000, 10_000),
      lagMs: () => {
        const lag = choices.oneIn(3) ? choices.pick(5_000) : 0;
        if (lag > 0) counts.add('a list was old');
        return lag;
      },
      note: (what) => simulation.note('remote', what),
    },
    token,
  );
  network.serve(REMOTE, remote, REMOTE_FAULTS);
  return remote;
}

function jsonResponse(status: number, content: unknown): BufferedResponse {
  return { status, body: JSON.stringify(content) };
}

function errorResponse(status: number, message: string): BufferedResponse {
  return jsonResponse(status, { message });
}

function found(machine: RemoteMachine | undefined, message: string): BufferedResponse {
  return machine === undefined ? errorResponse(404, message) : jsonResponse(200, machine);
}

function parsed(body: string | undefined): Json {
  const value: unknown = JSON.parse(body ?? '{}');
  return isJson(value) ? value : {};
}

function draftIn({ size, owner, key }: Json): MachineDraft | undefined {
  if (typeof size !== 'number') return undefined;
  const { manager, uid } = isJson(owner) ? owner : {};
  return {
    size,
    ...(typeof manager === 'string' && typeof uid === 'string' && { owner: { manager, uid } }),
    ...(typeof key === 'string' && { key }),
  };
}
