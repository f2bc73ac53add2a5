import { Client, type Manager } from '@vmwright/runtime';
import { said } from '../apiserver/refusal.ts';
import { API_SERVER, accessTo, startApiServer } from '../apiserver/simulated.ts';
import type { Scenario } from '../scenario/scenario.ts';
import { USUAL_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { ALWAYS } from './always.ts';
import { staleCache, unconverged } from './converged.ts';
import { endsOnlyForAReason } from './ends.ts';
import { Exclusion } from './exclusion.ts';
import { Findings, violationsOf } from './findings.ts';
import { Hand } from './hand.ts';
import { healStreams } from './heal.ts';
import { ConfigMap, Probe, Setting, Widget } from './kinds.ts';
import { actsOnlyWhileLeading, OF_THE_LEAD } from './lead.ts';
import type { Life } from './life.ts';
import { change, changeQuietly, changeWhileListing, finale, PROBES, probe, touch, WIDGETS } from './load.ts';
import { Outside } from './outside.ts';
import { LEASE, program, TIMES } from './program.ts';
import { textAt } from './read.ts';
import { Renewals } from './renewals.ts';
import { Replicas } from './replicas.ts';
import { CAME_BACK, countReturns, watchStored } from './stored.ts';
import { Telling } from './telling.ts';
import { Wire } from './wire.ts';

/** While things go wrong. */
const TROUBLE_MS = 60_000;
/** A stream that has fallen silent is noticed after 70 s, and what comes then may itself have waited. */
const HEALING_MS = 240_000;
/** Until another leads: what is under way ends, and the others look at the lease every five seconds. */
const HAND_OVER_MS = 18_000;
/** From the last change until all is as it should be, where nothing goes wrong. */
const SETTLING_MS = 90_000;
/** Longer than a lease lasts; in one history of so many, longer than a silent stream is trusted. */
const REST_MS = 20_000;
const LONG_REST = { oneIn: 8, ms: 90_000 };

/** The runtime itself, with all its promises: two or three replicas of one sound program, of which one leads. */
export const runtime: Scenario = {
  name: 'runtime',
  mustHappen: [
    'a replica was stopped without faults',
    'a finalize failed',
    'a probe failed',
    'the watch history was compacted',
    'the API server was restarted',
    'another writer interfered',
    'a replica became leader again',
    'a job ran',
    'an operation ended after its reconcile',
    'an operation was cancelled with its term',
    'a child was deleted by its controller',
    CAME_BACK,
    said(404),
    said(410),
    ...ALWAYS,
    ...OF_THE_LEAD,
  ],
  run: (simulation) => violationsOf(new History(simulation)),
};

class History {
  readonly findings: Findings;
  readonly #simulation: Simulation;
  readonly #server;
  readonly #hand: Hand;
  readonly #outside: Outside;
  readonly #telling: Telling;
  readonly #replicas: Replicas;
  readonly #managers = new Map<Life, Manager>();
  readonly #begun = new Map<string, number>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.findings = new Findings(simulation);
    const { findings } = this;
    const server = startApiServer(simulation);
    this.#server = server;
    for (const kind of [Widget, Setting, Probe]) server.serve(kind);
    const wire = new Wire<Life>(server);
    // In some runs streams break so often that few lists come to their end.
    const line = simulation.choices.one([USUAL_FAULTS.line, USUAL_FAULTS.line, 8]);
    simulation.network.serve(API_SERVER, wire, { ...USUAL_FAULTS, line });
    const { counts } = simulation;
    const lives = () => this.#replicas.alive;
    const onAct = actsOnlyWhileLeading(LEASE, {
      server,
      wire,
      findings,
      counts,
      lives,
      renewals: new Renewals(simulation, server, wire),
      renewMs: TIMES.renewMs,
    });
    watchStored(server, wire, findings);
    countReturns(server, counts);
    this.#hand = new Hand(server);
    this.#outside = new Outside(simulation, server, findings, onAct);
    this.#telling = new Telling(server, wire, findings);
    const exclusion = new Exclusion(findings, 'key', lives);
    simulation.network.faulty = true;
    const observers = {
      simulation,
      findings,
      exclusion,
      outside: this.#outside,
      telling: this.#telling,
      // Between a look and what follows from it.
      meddle: (name: string, oneIn: number) => {
        if (!simulation.choices.oneIn(oneIn)) return;
        counts.add('another writer interfered');
        this.#hand.merge(ConfigMap, name, { data: { note: simulation.choices.one(['x', 'y']) } });
      },
      probesFail: () => simulation.network.faulty,
      begun: (what: string) => void this.#begun.set(what, (this.#begun.get(what) ?? 0) + 1),
      made: (life: Life, manager: Manager) => void this.#managers.set(life, manager),
    };
    const count = 2 + (simulation.choices.oneIn(4) ? 1 : 0);
    this.#replicas = new Replicas({
      simulation,
      wire,
      count,
      program: (life) => program(life, observers),
      onEnd: (life, why) => {
        endsOnlyForAReason(findings, life, why);
        // What is under way here ends as soon as it hears that it should, unless the whole process was stopped meanwhile.
        const slackMs = TIMES.leaseMs - TIMES.renewMs;
        if (why.includes(`has not ended within ${slackMs / 1_000} s`) && life.runningMs > 2 * slackMs)
          findings.add('a former leader becomes a standby', `${life.name} ends: ${why}`);
      },
    });
  }

  async run(): Promise<void> {
    this.#plan();
    const { network } = this.#simulation;
    await this.#until(TROUBLE_MS);
    network.faulty = false;
    this.#replicas.heal();
    healStreams(this.#simulation);
    for (const name of WIDGETS) this.#hand.hold(Widget, name, false);
    await this.#converge('converged once faults have stopped', HEALING_MS);
    if (this.findings.any) return;
    await this.#handOver();
    await this.#finale();
    if (this.findings.any) return;
    await this.#rest();
  }

  /** What happens when, while things go wrong. */
  #plan(): void {
    const { choices, schedule, counts } = this.#simulation;
    const hand = this.#hand;
    const someTime = (act: () => void) => void schedule.after(choices.pick(TROUBLE_MS), act);
    for (let round = 6 + choices.pick(10); round > 0; round--) someTime(() => change(hand, choices, round));
    for (let times = choices.pick(5); times > 0; times--)
      someTime(() => this.#replicas.trouble(choices.pick(this.#replicas.count)));
    for (let times = choices.pick(4); times > 0; times--)
      someTime(() => {
        // With changes just before and after: who lists anew, and breaks off, may not go on from one of them.
        for (const round of [20, 21]) change(hand, choices, round);
        counts.add('the watch history was compacted');
        this.#server.compact();
        for (const round of [22, 23]) change(hand, choices, round);
        if (choices.oneIn(2)) this.#startAnew();
      });
    // At different moments: one waits long for its next try while another begins with short delays.
    const [first, ...others] = PROBES;
    probe(hand, first);
    for (const name of others) schedule.after(choices.pick(TROUBLE_MS / 2), () => probe(hand, name));
    const from = choices.pick(TROUBLE_MS / 2);
    for (let round = choices.pick(12); round > 0; round--)
      schedule.after(from + choices.pick(20_000), () => touch(hand, first, round));
    this.#tickets(choices.pick(4));
  }

  /** All watches break, and begin with a list. */
  #startAnew(): void {
    const { choices, schedule, counts, network } = this.#simulation;
    counts.add('the API server was restarted');
    network.cut(API_SERVER);
    for (let times = 3; times > 0; times--)
      schedule.after(choices.pick(2_500), () => {
        if (network.faulty) changeWhileListing(this.#hand, choices);
      });
  }

  /** Creates by a client of the runtime: one call makes one object at most. */
  #tickets(count: number): void {
    const { schedule, choices } = this.#simulation;
    const user = this.#simulation.start('user');
    const client = new Client({ world: user, access: accessTo(), fieldManager: 'user' });
    for (let ticket = 0; ticket < count; ticket++)
      schedule.after(choices.pick(TROUBLE_MS), () => {
        const metadata = { namespace: 'default', generateName: 'ticket-', name: '' };
        client.create(ConfigMap, { metadata, data: { ticket: `${ticket}` } }).catch(() => undefined);
      });
  }

  async #handOver(): Promise<void> {
    const { choices, schedule } = this.#simulation;
    if (!choices.oneIn(2)) return;
    const leader = this.#replicas.alive.find(({ leading }) => leading);
    if (leader === undefined) return;
    // Amid its work, if possible: it ends that first, and then gives up the lead.
    for (const name of WIDGETS) this.#hand.merge(Widget, name, { spec: { text: 'before the hand-over' } });
    schedule.after(choices.pick(3_000), () => this.#replicas.stop(leader));
    await this.#until(schedule.now + HAND_OVER_MS);
  }

  /** Some more changes of each object, with nothing that goes wrong, and nothing else that would wake it. */
  async #finale(): Promise<void> {
    this.#begun.clear();
    const terms = this.#terms;
    finale(this.#hand);
    await this.#converge('converged after a change', SETTLING_MS);
    for (const name of WIDGETS) changeQuietly(this.#hand, this.#simulation.choices, name);
    await this.#converge('converged after a change', SETTLING_MS);
    if (this.#terms !== terms) return; // who comes to lead looks at everything
    for (const [what, times] of this.#begun)
      if (what.includes('generation') && times > 1)
        this.findings.add('own writes do not trigger a reconcile', `${what} was reconciled ${times} times`);
  }

  async #rest(): Promise<void> {
    const { schedule, choices } = this.#simulation;
    const terms = this.#terms; // who comes to lead looks at everything
    // What was on its way has arrived: late events of the recorder, and the watch's word of them.
    await this.#until(schedule.now + 30_000);
    this.#telling.check();
    this.#checkTickets();
    this.#begun.clear();
    const writes: string[] = [];
    this.#server.listen(({ resource, key }) => {
      if (resource.kind.plural !== 'leases') writes.push(`${resource.kind.kind} ${key}`);
    });
    await this.#until(schedule.now + (choices.oneIn(LONG_REST.oneIn) ? LONG_REST.ms : REST_MS));
    if (writes.length > 0) this.findings.add('no writes when idle', writes.join(', '));
    if (this.#begun.size > 0 && this.#terms === terms)
      this.findings.add('no reconciles when idle', [...this.#begun.keys()].join(', '));
  }

  #checkTickets(): void {
    const seen = new Set<string>();
    for (const { data } of this.#server.objects(ConfigMap)) {
      const ticket = textAt(data, 'ticket');
      if (ticket === undefined) continue;
      if (seen.has(ticket))
        this.findings.add('a create request creates one object', `ticket ${ticket} is there twice`);
      seen.add(ticket);
    }
  }

  /** Until all is as it should be, caches too. */
  async #converge(invariant: string, withinMs: number): Promise<void> {
    const { schedule } = this.#simulation;
    const until = schedule.now + withinMs;
    let left: string | undefined = 'nothing was looked at';
    while (schedule.now < until && left !== undefined && !this.findings.any) {
      await this.#until(Math.min(schedule.now + 5_000, until));
      left = unconverged(this.#server, this.#outside) ?? this.#staleCaches();
    }
    if (left !== undefined && !this.findings.any)
      this.findings.add(invariant, `not within ${withinMs / 1_000} s: ${left}`);
  }

  #staleCaches(): string | undefined {
    for (const life of this.#replicas.alive) {
      const manager = this.#managers.get(life);
      if (manager === undefined) continue;
      const stale = manager.ready ? staleCache(this.#server, manager) : 'it has no complete list';
      if (stale !== undefined) return `${life.name}: ${stale}`;
    }
    return undefined;
  }

  /** How often anybody has come to lead. */
  get #terms(): number {
    return this.#managers.keys().reduce((sum, { terms }) => sum + terms, 0);
  }

  #until(at: number): Promise<void> {
    return this.#simulation.run({ until: at, done: () => this.findings.any });
  }
}
