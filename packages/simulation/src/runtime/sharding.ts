import { Lease, Manager, type ReconcileContext } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import type { Scenario } from '../scenario/scenario.ts';
import type { Simulation } from '../world/simulation.ts';
import { ALWAYS } from './always.ts';
import { endsOnlyForAReason } from './ends.ts';
import { Exclusion } from './exclusion.ts';
import { Findings, violationsOf } from './findings.ts';
import { Hand } from './hand.ts';
import { healStreams } from './heal.ts';
import { Probe } from './kinds.ts';
import type { Life } from './life.ts';
import { Meddler } from './meddler.ts';
import { actsOnlyAsOwner } from './ownership.ts';
import { numberAt } from './read.ts';
import { Renewals } from './renewals.ts';
import { Replicas } from './replicas.ts';
import { Wire } from './wire.ts';

const NAME = 'share';
const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 5_000 };
const SHARDS = 3;
/** And the shard that each is in. */
const NAMESPACES = { n0: 2, n1: 1, n2: 2, n4: 0 };
const OBJECTS = ['a', 'b'] as const;
const TROUBLE_MS = 70_000;
const HEALING_MS = 300_000;
/** For what was on its way when all was as it should be. */
const ARRIVING_MS = 12_000;
/** Longer than a lease lasts; in one history of so many, longer than a silent stream is trusted. */
const REST_MS = 18_000;
const LONG_REST = { oneIn: 8, ms: 90_000 };
/** Of one piece of work; below the time that a member has to end in after it lost its shards. */
const LONGEST_WORK_MS = 2_500;
const LONGEST_WIND_UP_MS = 3_500;

const LATE = 'a write arrived after its namespace changed its owner';

/** Replicas that divide the namespaces among them, while some crash, stall or are cut off, and people meddle. */
export const sharding: Scenario = {
  name: 'sharding',
  mustHappen: [
    ...ALWAYS,
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
  readonly findings: Findings;
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #hands: readonly Hand[];
  readonly #exclusion: Exclusion;
  readonly #replicas: Replicas;
  /** Who has last worked in a namespace. */
  readonly #last = new Map<string, Life>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.findings = new Findings(simulation);
    const server = startApiServer(simulation);
    this.#server = server;
    server.serve(Probe);
    const wire = new Wire<Life>(server);
    simulation.network.serve(API_SERVER, wire);
    this.#exclusion = new Exclusion(this.findings, 'namespace', () => this.#replicas.alive);
    const renewals = new Renewals(simulation, server, wire);
    const acts = actsOnlyAsOwner(
      { simulation, server, findings: this.findings, leaseMs: TIMES.leaseMs },
      NAME,
      NAMESPACES,
    );
    wire.onWrite = ({ sender, path }) => {
      const namespace = namespaceIn(path);
      if (namespace === undefined) return;
      this.#exclusion.sends(sender, `${namespace}/`);
      acts(sender, namespace);
      const age = Math.max(renewals.age(sender), renewals.ageOfLook(sender));
      if (age > TIMES.renewMs)
        this.findings.add(
          'no action after the lease deadline',
          `${sender.name} writes in ${namespace}, ${age} ms after it last renewed its lease, or looked at all`,
        );
    };
    wire.onLand = ({ sender, path }) => {
      const last = this.#last.get(namespaceIn(path) ?? '');
      if (last !== undefined && last !== sender) simulation.counts.add(LATE);
    };
    wire.loses = ({ sender, method, path }) =>
      (sender.isBlind && method === 'GET' && path.includes('/leases?')) ||
      (sender.isMute && method === 'PATCH' && path.includes('/leases/'));
    this.#hands = Object.keys(NAMESPACES).map((namespace) => new Hand(server, namespace));
    for (const hand of this.#hands)
      for (const name of OBJECTS) hand.apply(Probe, name, { spec: { round: 0 } });
    simulation.network.faulty = true;
    const count = 2 + simulation.choices.pick(2);
    this.#replicas = new Replicas({
      simulation,
      wire,
      count,
      program: (life) => this.#program(life),
      onEnd: (life, why) => endsOnlyForAReason(this.findings, life, why),
    });
  }

  async run(): Promise<void> {
    this.#plan();
    const { network } = this.#simulation;
    await this.#until(TROUBLE_MS);
    network.faulty = false;
    this.#replicas.heal();
    healStreams(this.#simulation);
    await this.#converge();
    if (this.findings.any) return;
    await this.#rest();
  }

  #program(life: Life): Manager {
    const { world, access, log } = life;
    const sharding = { name: NAME, identity: life.name, shards: SHARDS, ...TIMES };
    const manager = new Manager({ world, access, name: 'program', log, sharding });
    life.simulated.work.observe(manager);
    manager.control<Probe>({
      for: Probe,
      concurrency: 4,
      backoff: { baseMs: 500, maxMs: 16_000 },
      reconcile: (probe, context) => this.#reconcile(life, probe, context),
    });
    manager.job({
      name: 'sweep',
      everyMs: 15_000,
      run: async () => {
        using _ = this.#exclusion.begin(life, 'sweep/');
        this.#simulation.counts.add('a job ran');
        await this.#work(life);
      },
    });
    return manager;
  }

  #work(life: Life): Promise<void> {
    const ms = this.#simulation.choices.delay(400, LONGEST_WORK_MS);
    return new Promise((resolve) => void life.simulated.after(ms, resolve));
  }

  async #reconcile(
    life: Life,
    probe: Probe,
    { key, signal, setStatus }: ReconcileContext<Probe>,
  ): Promise<void> {
    using _ = this.#exclusion.begin(life, key);
    const [namespace = ''] = key.split('/', 1);
    const before = this.#last.get(namespace);
    if (before !== undefined && before !== life) this.#simulation.counts.add('a namespace changed its owner');
    this.#last.set(namespace, life);
    await this.#work(life);
    try {
      await setStatus(probe, { observedGeneration: probe.metadata.generation ?? 0 });
    } catch (error) {
      // Winds up, in as much time as one has who was told late that he may not act any more.
      const { choices } = this.#simulation;
      const windUpMs = choices.pick(LONGEST_WIND_UP_MS);
      if (signal.aborted) await new Promise<void>((resolve) => void life.simulated.after(windUpMs, resolve));
      throw error;
    }
  }

  #plan(): void {
    const { choices, schedule } = this.#simulation;
    const [first, ...others] = this.#hands;
    if (first === undefined) return;
    const someTime = (act: () => void) => void schedule.after(choices.pick(TROUBLE_MS), act);
    for (let round = 20 + choices.pick(40); round > 0; round--)
      someTime(() => choices.one([first, ...others]).merge(Probe, choices.one(OBJECTS), { spec: { round } }));
    for (let times = choices.pick(5); times > 0; times--)
      someTime(() => this.#replicas.trouble(choices.pick(this.#replicas.count)));
    const touchAll = () => {
      for (const hand of this.#hands)
        for (const name of OBJECTS) hand.merge(Probe, name, { spec: { round: choices.pick(1_000) } });
    };
    new Meddler(this.#simulation, this.#server, NAME, this.#replicas, touchAll).plan(TROUBLE_MS);
  }

  async #converge(): Promise<void> {
    const { schedule } = this.#simulation;
    const until = schedule.now + HEALING_MS;
    let left: string | undefined = 'nothing was looked at';
    while (schedule.now < until && left !== undefined && !this.findings.any) {
      await this.#until(Math.min(schedule.now + 5_000, until));
      left = this.#server
        .objects(Probe)
        .find((probe) => numberAt(probe, 'status', 'observedGeneration') !== probe.metadata.generation)
        ?.metadata.name;
    }
    if (left !== undefined && !this.findings.any)
      this.findings.add('converged once faults have stopped', `not within ${HEALING_MS / 1_000} s: ${left}`);
  }

  /** Nothing is written but leases; and every namespace is somebody's after that, too. */
  async #rest(): Promise<void> {
    const { schedule, choices } = this.#simulation;
    await this.#until(schedule.now + ARRIVING_MS);
    const writes: string[] = [];
    let resting = true;
    this.#server.listen(({ resource, key }) => {
      if (resting && resource.kind.plural !== Lease.plural) writes.push(`${resource.kind.kind} ${key}`);
    });
    await this.#until(schedule.now + (choices.oneIn(LONG_REST.oneIn) ? LONG_REST.ms : REST_MS));
    resting = false;
    if (writes.length > 0) this.findings.add('no writes when idle', writes.join(', '));
    for (const hand of this.#hands)
      for (const name of OBJECTS) hand.merge(Probe, name, { spec: { round: -1 } });
    await this.#converge();
  }

  #until(at: number): Promise<void> {
    return this.#simulation.run({ until: at, done: () => this.findings.any });
  }
}
