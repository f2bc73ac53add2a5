import type { ComputeChange, ComputeFacts, HostFacts, MachineFacts } from '@vmwright/operator';
import type { KubeObject } from '@vmwright/runtime';
import type { ReplicaWorld } from '../scenario/replica-world.ts';
import { textAt } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import type { KnownHost, KnownHosts } from './rules.ts';

/** Actions on hosts and machines. When many seeds are run, each action must occur in at least one seed. */
export const HOST_ACTIONS = [
  'a machine moved to another host',
  'a host entered maintenance mode',
  'a host was disconnected',
  'a machine was powered off',
  'a GPU of a host was taken',
  'a replica lost its connection to vCenter',
] as const;

type HostAction = (typeof HOST_ACTIONS)[number];

/** Name of the vCenter, which is the prefix of the ids of hosts and machines. */
const VCENTER = 'main';
/** Maximum delay of a notification from vCenter. */
const NOTIFY_MS = 2_000;
/** Time without a connection to vCenter after which a replica's data about hosts and machines is stale. */
const STALE_MS = 5_000;
const OUTAGE_MS = 40_000;

export const SCHEME = 'vsphere://';
/** Nodes that are VMs in vCenter. They have no GPUs of their own: all nodes on a host share the GPUs of the host. */
export const MACHINES = ['v1', 'v2'] as const;

interface Host {
  readonly id: string;
  readonly gpus: number;
  /** Number of GPUs that machines other than the nodes in `MACHINES` use. */
  readonly taken: number;
  readonly isConnected: boolean;
  readonly isInMaintenance: boolean;
}

interface Machine {
  readonly name: string;
  readonly host: string;
  readonly isPoweredOn: boolean;
  readonly cpuDemandMhz: number;
}

interface State {
  readonly hosts: ReadonlyMap<string, Host>;
  readonly machines: ReadonlyMap<string, Machine>;
}

const FIRST: State = {
  hosts: new Map(
    [
      { id: `${VCENTER}/host-1`, gpus: 2 },
      { id: `${VCENTER}/host-2`, gpus: 1 },
    ].map((host) => [host.id, { ...host, taken: 0, isConnected: true, isInMaintenance: false }]),
  ),
  machines: new Map(
    MACHINES.map((name) => [
      uuidOf(name),
      { name, host: `${VCENTER}/host-1`, isPoweredOn: true, cpuDemandMhz: 100 },
    ]),
  ),
};

export function uuidOf(name: string): string {
  return `00000000-0000-4000-9000-0000000000${name}`;
}

/** Hosts and machines of a vCenter, and the view that each replica has of them. */
export class Hosts implements KnownHosts {
  readonly #simulation: Simulation;
  readonly #views: { readonly view: HostView; readonly world: ReplicaWorld }[] = [];
  #state = FIRST;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  /** Creates the view that a new process of a replica has of the hosts. */
  viewFor(world: ReplicaWorld): HostView {
    const view = new HostView(this.#state);
    this.#views.push({ view, world });
    return view;
  }

  hostOf(node: KubeObject): KnownHost | 'unknown' | undefined {
    return hostIn(this.#state, node);
  }

  get pools(): readonly { readonly id: string; readonly gpus: number }[] {
    return [...this.#state.hosts.values()];
  }

  /** Changes a host or a machine, or disconnects a replica from vCenter. */
  act(): void {
    const { choices } = this.#simulation;
    const machine = choices.one(MACHINES);
    const [one = '', other = ''] = [...this.#state.hosts.keys()];
    const host = choices.oneIn(2) ? other : one;
    choices.one<() => void>([
      () => this.#setMachine('a machine moved to another host', machine, { host }),
      () => this.#setMachine('a machine moved to another host', machine, { host }),
      () => this.#flip('a host entered maintenance mode', host, 'isInMaintenance'),
      () => this.#flip('a host was disconnected', host, 'isConnected'),
      () => this.#setHost('a GPU of a host was taken', host, { taken: choices.pick(2) }),
      () => this.#setMachine('a machine was powered off', machine, { isPoweredOn: choices.oneIn(2) }),
      () => this.#cut(),
      () => this.#cut(),
      () => this.#cut(),
    ])();
  }

  /** Changes the CPU demand of all machines. Usage alone must not change an existing status of a GPUInfo. */
  changeUsage(): void {
    const machines = new Map(this.#state.machines);
    for (const [uuid, machine] of machines)
      machines.set(uuid, { ...machine, cpuDemandMhz: this.#simulation.choices.pick(1_000) });
    this.#set({ ...this.#state, machines });
  }

  /** Ends all outages of vCenter. */
  heal(): void {
    for (const { view } of this.#views) view.restore(this.#state);
  }

  #flip(what: HostAction, id: string, field: 'isInMaintenance' | 'isConnected'): void {
    const host = this.#state.hosts.get(id);
    if (host !== undefined) this.#setHost(what, id, { [field]: !host[field] });
  }

  #setHost(what: HostAction, id: string, change: Partial<Host>): void {
    const host = this.#state.hosts.get(id);
    if (host === undefined) return;
    this.#count(what);
    this.#note(`changes ${id}: ${JSON.stringify(change)}`);
    this.#set({ ...this.#state, hosts: new Map(this.#state.hosts).set(id, { ...host, ...change }) });
  }

  #setMachine(what: HostAction, name: string, change: Partial<Machine>): void {
    const uuid = uuidOf(name);
    const machine = this.#state.machines.get(uuid);
    if (machine === undefined) return;
    this.#count(what);
    this.#note(`changes ${name}: ${JSON.stringify(change)}`);
    this.#set({
      ...this.#state,
      machines: new Map(this.#state.machines).set(uuid, { ...machine, ...change }),
    });
  }

  #set(state: State): void {
    const { choices } = this.#simulation;
    this.#state = state;
    for (const { view, world } of this.#views)
      world.after(choices.pick(NOTIFY_MS), () => view.update(this.#state));
  }

  #cut(): void {
    const { choices, schedule, network } = this.#simulation;
    const cut = this.#views.at(-1 - choices.pick(2));
    if (cut === undefined || !network.faulty) return;
    const { view, world } = cut;
    this.#count('a replica lost its connection to vCenter');
    this.#note(`does not respond to ${world.identity}`);
    view.cut();
    world.after(STALE_MS, () => view.expire());
    schedule.after(STALE_MS + choices.pick(OUTAGE_MS), () => world.after(0, () => view.restore(this.#state)));
  }

  #count(what: HostAction): void {
    this.#simulation.counts.add(what);
  }

  #note(what: string): void {
    this.#simulation.note('vcenter', what);
  }
}

/** View that one replica has of hosts and machines. */
export class HostView implements ComputeFacts, KnownHosts {
  readonly #listeners = new Set<(change: ComputeChange) => void>();
  #state: State;
  #isCut = false;
  #isStale = false;

  constructor(state: State) {
    this.#state = state;
  }

  get staleVcenters(): readonly string[] {
    return this.#isStale ? [VCENTER] : [];
  }

  host(id: string): HostFacts | undefined {
    const host = this.#state.hosts.get(id);
    if (host === undefined) return undefined;
    const gpus = Array.from({ length: host.gpus }, (_, index) => ({
      id: `0000:3b:00.${index}`,
      model: '',
      vendor: 'NVIDIA',
      mode: 'graphics' as const,
      isInUse: index < host.taken,
    }));
    const { isConnected, isInMaintenance } = host;
    return { id, name: id, isConnected, isInMaintenance, gpus, maintenance: [], warnings: [] };
  }

  machineByUuid(uuid: string): MachineFacts | undefined {
    const machine = this.#state.machines.get(uuid);
    if (machine === undefined) return undefined;
    const { name, host: hostId, isPoweredOn, cpuDemandMhz } = machine;
    return {
      id: machineId(machine),
      name,
      uuid,
      instanceUuid: uuid,
      isPoweredOn,
      hostId,
      gpus: [],
      cpuDemandMhz,
      memoryUsageMb: cpuDemandMhz,
    };
  }

  machineByName(name: string): MachineFacts | undefined {
    return this.machineByUuid(uuidOf(name));
  }

  subscribe(listener: (change: ComputeChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  synced(): Promise<void> {
    return Promise.resolve();
  }

  hostOf(node: KubeObject): KnownHost | 'unknown' | undefined {
    const host = hostIn(this.#state, node);
    return host !== undefined && this.#isStale ? 'unknown' : host;
  }

  /** Copies the state of vCenter to this view, unless the connection is cut. */
  update(state: State): void {
    if (!this.#isCut) this.#replace(state, false);
  }

  cut(): void {
    this.#isCut = true;
  }

  expire(): void {
    if (!this.#isCut || this.#isStale) return;
    this.#isStale = true;
    this.#report([], [], [], true);
  }

  restore(state: State): void {
    if (!this.#isCut) return;
    this.#isCut = false;
    const wasStale = this.#isStale;
    this.#isStale = false;
    this.#replace(state, wasStale);
  }

  #replace(state: State, isStalenessChanged: boolean): void {
    const before = this.#state;
    this.#state = state;
    const hosts = [...state.hosts].filter(([id, host]) => before.hosts.get(id) !== host);
    const changed = [...state.machines].filter(([uuid, machine]) => before.machines.get(uuid) !== machine);
    const isUsage = ([uuid, machine]: [string, Machine]) => {
      const known = before.machines.get(uuid);
      return known?.host === machine.host && known.isPoweredOn === machine.isPoweredOn;
    };
    const ids = (entries: readonly [string, Machine][]) => entries.map(([, machine]) => machineId(machine));
    const machines = changed.filter((entry) => !isUsage(entry));
    this.#report(
      hosts.map(([id]) => id),
      ids(machines),
      ids(changed.filter(isUsage)),
      isStalenessChanged,
    );
  }

  #report(
    hosts: readonly string[],
    machines: readonly string[],
    usage: readonly string[],
    isStalenessChanged: boolean,
  ): void {
    const change = {
      hosts: new Set(hosts),
      machines: new Set(machines),
      usage: new Set(usage),
      isStalenessChanged,
    };
    for (const notify of this.#listeners) notify(change);
  }
}

function machineId({ name }: Machine): string {
  return `${VCENTER}/vm-${name}`;
}

function hostIn({ hosts, machines }: State, node: KubeObject): KnownHost | 'unknown' | undefined {
  const provider = textAt(node, 'spec', 'providerID') ?? '';
  if (!provider.startsWith(SCHEME)) return undefined;
  const machine = machines.get(provider.slice(SCHEME.length));
  const host = hosts.get(machine?.host ?? '');
  if (machine === undefined || host === undefined) return 'unknown';
  const { id, gpus, taken, isConnected, isInMaintenance } = host;
  return { id, gpus, taken, isAvailable: machine.isPoweredOn && isConnected && !isInMaintenance };
}
