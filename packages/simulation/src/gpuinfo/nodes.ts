import type { ApiServer } from '../apiserver/api-server.ts';
import { timeOf } from '../apiserver/object.ts';
import { AdminClient } from '../runtime/admin-client.ts';
import { find } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import { MACHINES, SCHEME, uuidOf } from './hosts.ts';
import { GPU, MAINTENANCE_END, MAINTENANCE_START, MODEL, Node, ZONE } from './kinds.ts';
import { HOUR_MS } from './rules.ts';

/** Actions on nodes. When many seeds are run, each action must occur in at least one seed. */
export const NODE_ACTIONS = [
  'a node was cordoned',
  'a node was tainted',
  'a node became NotReady',
  'a node was deleted',
  'a node was created again',
  'the GPUs of a node changed',
  'maintenance of a node was announced',
  'maintenance of a node was cancelled',
] as const;

type NodeAction = (typeof NODE_ACTIONS)[number];

interface Shape {
  readonly name: string;
  readonly gpus: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly providerID: string;
}

const A100 = 'A100';
const T4 = 'T4';
export const MODELS = [A100, T4] as const;
export const ZONES = ['east', 'west'] as const;

const shape = (name: string, gpus: number, model: string, zone: string): Shape => ({
  name,
  gpus,
  providerID: `kind://${name}`,
  labels: { [ZONE]: zone, ...(gpus > 0 && { [MODEL]: model }) },
});

const SHAPES: readonly [Shape, ...Shape[]] = [
  shape('a1', 2, A100, 'east'),
  shape('t1', 1, T4, 'west'),
  shape('t2', 1, T4, 'east'),
  shape('c1', 0, '', 'west'),
  ...MACHINES.map((name) => ({ ...shape(name, 0, '', 'east'), providerID: SCHEME + uuidOf(name) })),
];

/** Largest number of GPUs that a node announces at any time. */
export const MAX_GPUS = 2;

/** Administrators, kubelets and device plugins that change nodes. */
export class Nodes {
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #admin: AdminClient;
  readonly #now: () => number;

  /** @param now returns the time that a correct clock shows, in milliseconds since 1970 */
  constructor(simulation: Simulation, server: ApiServer, now: () => number) {
    this.#simulation = simulation;
    this.#server = server;
    this.#admin = new AdminClient(server);
    this.#now = now;
  }

  setUp(): void {
    for (const each of SHAPES) this.#create(each);
  }

  /** Changes a node. */
  act(): void {
    const { choices } = this.#simulation;
    const each = choices.one(SHAPES);
    if (find(this.#server, Node, undefined, each.name) === undefined) {
      this.#count('a node was created again');
      this.#create(each);
      return;
    }
    const { name } = each;
    choices.one<() => void>([
      () => this.#patch('a node was cordoned', name, { spec: { unschedulable: choices.oneIn(2) || null } }),
      () => this.#patch('a node was tainted', name, { spec: { taints: this.#taints() } }),
      () => this.#patch('a node became NotReady', name, { status: { conditions: [this.#ready()] } }),
      () => this.#setGpus(each),
      () => this.#setGpus(each),
      () => this.#announce(name),
      () => this.#announce(name),
      () => this.#patch('maintenance of a node was cancelled', name, withMaintenance(null, null)),
      () => this.#delete(name),
    ])();
  }

  /** Makes every node usable again. */
  repair(): void {
    for (const each of SHAPES) {
      this.#create(each);
      const conditions = [{ type: 'Ready', status: 'True' }];
      this.#admin.merge(Node, each.name, {
        spec: { unschedulable: null, taints: null },
        status: { conditions },
      });
    }
  }

  #create({ name, gpus, labels, providerID }: Shape): void {
    const count = gpus > 0 ? { [GPU]: String(gpus) } : {};
    this.#admin.create(Node, name, {
      metadata: { labels },
      spec: { providerID },
      status: { conditions: [{ type: 'Ready', status: 'True' }], capacity: count, allocatable: count },
    });
  }

  #taints(): readonly object[] | null {
    return this.#simulation.choices.oneIn(2)
      ? [{ key: 'dedicated', value: 'x', effect: 'NoSchedule' }]
      : null;
  }

  #ready(): object {
    return { type: 'Ready', status: this.#simulation.choices.one(['True', 'False', 'Unknown']) };
  }

  #setGpus({ name, gpus }: Shape): void {
    if (gpus === 0) return;
    const count = String(this.#simulation.choices.pick(MAX_GPUS + 1));
    const status = { capacity: { [GPU]: String(MAX_GPUS) }, allocatable: { [GPU]: count } };
    this.#patch('the GPUs of a node changed', name, { status });
  }

  #announce(name: string): void {
    const { choices } = this.#simulation;
    const start = choices.one([90 * 60_000, 5 * HOUR_MS, 30 * 60_000, 20_000, 0]);
    const end = choices.oneIn(2) ? timeOf(this.#now() + start + choices.one([HOUR_MS, 30_000])) : null;
    const patch = withMaintenance(start === 0 && end === null ? 'now' : timeOf(this.#now() + start), end);
    this.#patch('maintenance of a node was announced', name, patch);
  }

  #delete(name: string): void {
    this.#count('a node was deleted');
    this.#admin.delete(Node, name);
  }

  #patch(what: NodeAction, name: string, patch: object): void {
    this.#count(what);
    this.#simulation.note('admin', `patches ${name}: ${JSON.stringify(patch)}`);
    this.#admin.merge(Node, name, patch);
  }

  #count(what: NodeAction): void {
    this.#simulation.counts.add(what);
  }
}

function withMaintenance(start: string | null, end: string | null): object {
  return { metadata: { annotations: { [MAINTENANCE_START]: start, [MAINTENANCE_END]: end } } };
}
