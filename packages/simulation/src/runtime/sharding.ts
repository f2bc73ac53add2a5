import { Lease, Manager, type ReconcileContext } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import type { Scenario } from '../scenario/scenario.ts';
import type { Simulation } from '../world/simulation.ts';
import { AdminClient } from './admin-client.ts';
import { COMMON_FAULTS } from './common-faults.ts';
import { Exclusion } from './exclusion.ts';
import { checkExitReason } from './exit-reason.ts';
import { numberAt } from './fields.ts';
import { healStreams } from './heal.ts';
import { Probe } from './kinds.ts';
import { LeaseTampering } from './lease-tampering.ts';
import { checkOwnership } from './ownership.ts';
import { Renewals } from './renewals.ts';
import type { Replica } from './replica.ts';
import { Replicas } from './replicas.ts';
import { Violations, violationsOf } from './violations.ts';
import { Wire } from './wire.ts';

const NAME = 'share';
const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 5_000 };
const SHARDS = 3;
/** Namespaces, each with the number of its shard. */
const NAMESPACES = { n0: 2, n1: 1, n2: 2, n4: 0 };
const OBJECTS = ['a', 'b'] as const;
const FAULT_MS = 70_000;
const CONVERGENCE_MS = 300_000;
/** Maximum time until requests in flight have arrived. */
const ARRIVING_MS = 12_000;
/**
 * Durations of the idle phase. The usual one is longer than the lease duration. The long one, in one run of 8, is also
 * longer than the silence timeout of a stream.
 */
const IDLE_MS = 18_000;
const LONG_IDLE = { oneIn: 8, ms: 90_000 };
/**
 * Maximum duration of a reconcile. It is shorter than the time that a replica has to end its work after it lost its
 * shards.
 */
const MAX_RECONCILE_MS = 2_500;
const MAX_CLEANUP_MS = 3_500;

const LATE = 'a write arrived after its namespace changed its owner';

/**
 * Scenario in which each of several replicas owns some of the namespaces. Replicas crash, stall or are partitioned, and
 * users tamper with leases.
 */
export const sharding: Scenario = {
  name: 'sharding',
  mustHappen: [
    ...COMMON_FAULTS,
    'a job ran',
    'a namespace changed its owner',
    LATE,
    'the shard map was deleted manually',
    'the shard map was edited manually',
    'the lease of a member was deleted manually',
    'a replica could not list leases',
    'a replica could not renew its lease',
  ],
  run: (simulation) => violationsOf(new History(simulation)),
};

function namespaceIn(path: string): string | undefined {
  return /\/namespaces\/([^/]+)\/probes\//.exec(path)?.[1];
}

class History {
  readonly violations: Violations;
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #admins: readonly AdminClient[];
  readonly #exclusion: Exclusion;
  readonly #replicas: Replicas;
  /** Replica that last reconciled an object of a namespace, by namespace. */
  readonly #last = new Map<string, Replica>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.violations = new Violations(simulation);
    const server = startApiServer(simulation);
    this.#server = server;
    server.serve(Probe);
    const wire = new Wire<Replica>(server);
    simulation.network.serve(API_SERVER, wire);
    this.#exclusion = new Exclusion(this.violations, 'namespace', () => this.#replicas.alive);
    const renewals = new Renewals(simulation, server, wire);
    const acts = checkOwnership(
      { simulation, server, violations: this.violations, leaseMs: TIMES.leaseMs },
      NAME,
      NAMESPACES,
    );
    wire.onWrite = ({ sender, path }) => {
      const namespace = namespaceIn(path);
      if (namespace === undefined) return;
      this.#exclusion.sends(sender, `${namespace}/`);
      acts(sender, namespace);
      const age = Math.max(renewals.age(sender), renewals.ageOfList(sender));
      if (age > TIMES.renewMs)
        this.violations.add(
          'no action after the lease deadline',
          `${sender.name} writes in ${namespace}, ${age} ms after its last lease renewal or list`,
        );
    };
    wire.onArrival = ({ sender, path }) => {
      const last = this.#last.get(namespaceIn(path) ?? '');
      if (last !== undefined && last !== sender) simulation.counts.add(LATE);
    };
    wire.drops = ({ sender, method, path }) =>
      (sender.dropsLists && method === 'GET' && path.includes('/leases?')) ||
      (sender.dropsRenewals && method === 'PATCH' && path.includes('/leases/'));
    this.#admins = Object.keys(NAMESPACES).map((namespace) => new AdminClient(server, namespace));
    for (const admin of this.#admins)
      for (const name of OBJECTS) admin.apply(Probe, name, { spec: { round: 0 } });
    simulation.network.faulty = true;
    const count = 2 + simulation.choices.pick(2);
    this.#replicas = new Replicas({
      simulation,
      wire,
      count,
      program: (replica) => this.#program(replica),
      onEnd: (replica, why) => checkExitReason(this.violations, replica, why),
    });
  }

  async run(): Promise<void> {
    this.#plan();
    const { network } = this.#simulation;
    await this.#until(FAULT_MS);
    network.faulty = false;
    this.#replicas.heal();
    healStreams(this.#simulation);
    await this.#converge();
    if (this.violations.any) return;
    await this.#rest();
  }

  #program(replica: Replica): Manager {
    const { world, access, log } = replica;
    const sharding = { name: NAME, identity: replica.name, shards: SHARDS, ...TIMES };
    const manager = new Manager({ world, access, name: 'program', log, sharding });
    replica.simulated.work.observe(manager);
    manager.control<Probe>({
      for: Probe,
      concurrency: 4,
      backoff: { baseMs: 500, maxMs: 16_000 },
      reconcile: (probe, context) => this.#reconcile(replica, probe, context),
    });
    manager.job({
      name: 'gc',
      everyMs: 15_000,
      run: async () => {
        using _ = this.#exclusion.begin(replica, 'gc/');
        this.#simulation.counts.add('a job ran');
        await this.#work(replica);
      },
    });
    return manager;
  }

  #work(replica: Replica): Promise<void> {
    const ms = this.#simulation.choices.delay(400, MAX_RECONCILE_MS);
    return new Promise((resolve) => void replica.simulated.after(ms, resolve));
  }

  async #reconcile(
    replica: Replica,
    probe: Probe,
    { key, signal, setStatus }: ReconcileContext<Probe>,
  ): Promise<void> {
    using _ = this.#exclusion.begin(replica, key);
    const [namespace = ''] = key.split('/', 1);
    const before = this.#last.get(namespace);
    if (before !== undefined && before !== replica)
      this.#simulation.counts.add('a namespace changed its owner');
    this.#last.set(namespace, replica);
    await this.#work(replica);
    try {
      await setStatus(probe, { observedGeneration: probe.metadata.generation ?? 0 });
    } catch (error) {
      // Simulates a reconcile that still needs time to clean up after it was aborted.
      const { choices } = this.#simulation;
      const cleanupMs = choices.pick(MAX_CLEANUP_MS);
      if (signal.aborted)
        await new Promise<void>((resolve) => void replica.simulated.after(cleanupMs, resolve));
      throw error;
    }
  }

  #plan(): void {
    const { choices, schedule } = this.#simulation;
    const [first, ...others] = this.#admins;
    if (first === undefined) return;
    const someTime = (act: () => void) => void schedule.after(choices.pick(FAULT_MS), act);
    for (let round = 20 + choices.pick(40); round > 0; round--)
      someTime(() => choices.one([first, ...others]).merge(Probe, choices.one(OBJECTS), { spec: { round } }));
    for (let times = choices.pick(5); times > 0; times--)
      someTime(() => this.#replicas.injectFault(choices.pick(this.#replicas.count)));
    const touchAll = () => {
      for (const admin of this.#admins)
        for (const name of OBJECTS) admin.merge(Probe, name, { spec: { round: choices.pick(1_000) } });
    };
    new LeaseTampering(this.#simulation, this.#server, NAME, this.#replicas, touchAll).plan(FAULT_MS);
  }

  async #converge(): Promise<void> {
    const { schedule } = this.#simulation;
    const until = schedule.now + CONVERGENCE_MS;
    let left: string | undefined = 'nothing was checked';
    while (schedule.now < until && left !== undefined && !this.violations.any) {
      await this.#until(Math.min(schedule.now + 5_000, until));
      left = this.#server
        .objects(Probe)
        .find((probe) => numberAt(probe, 'status', 'observedGeneration') !== probe.metadata.generation)
        ?.metadata.name;
    }
    if (left !== undefined && !this.violations.any)
      this.violations.add(
        'converged once faults have stopped',
        `not within ${CONVERGENCE_MS / 1_000} s: ${left}`,
      );
  }

  /**
   * Checks that only leases are written during the idle phase. Then changes objects in all namespaces and checks that
   * replicas reconcile them. Without these changes, a namespace without an owner would not be noticed.
   */
  async #rest(): Promise<void> {
    const { schedule, choices } = this.#simulation;
    await this.#until(schedule.now + ARRIVING_MS);
    const writes: string[] = [];
    let isIdle = true;
    this.#server.listen(({ resource, key }) => {
      if (isIdle && resource.kind.plural !== Lease.plural) writes.push(`${resource.kind.kind} ${key}`);
    });
    await this.#until(schedule.now + (choices.oneIn(LONG_IDLE.oneIn) ? LONG_IDLE.ms : IDLE_MS));
    isIdle = false;
    if (writes.length > 0) this.violations.add('no writes when idle', writes.join(', '));
    for (const admin of this.#admins)
      for (const name of OBJECTS) admin.merge(Probe, name, { spec: { round: -1 } });
    await this.#converge();
  }

  #until(at: number): Promise<void> {
    return this.#simulation.run({ until: at, done: () => this.violations.any });
  }
}
