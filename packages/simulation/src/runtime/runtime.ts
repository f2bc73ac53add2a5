import { Client, ConfigMap, type Manager } from '@vmwright/runtime';
import { errorCount } from '../apiserver/errors.ts';
import { API_SERVER, accessTo, startApiServer } from '../apiserver/simulated.ts';
import type { Scenario } from '../scenario/scenario.ts';
import { USUAL_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { AdminClient } from './admin-client.ts';
import { COMMON_FAULTS } from './common-faults.ts';
import { staleCache, unconverged } from './converged.ts';
import { EventChecks } from './event-checks.ts';
import { Exclusion } from './exclusion.ts';
import { checkExitReason } from './exit-reason.ts';
import { ExternalSystem } from './external-system.ts';
import { textAt } from './fields.ts';
import { healStreams } from './heal.ts';
import { Probe, Setting, Widget } from './kinds.ts';
import { checkLeadership, LEADERSHIP_MOMENTS } from './leadership.ts';
import { change, changeQuietly, changeWhileListing, finale, PROBES, probe, touch, WIDGETS } from './load.ts';
import { LEASE, program, TIMES } from './program.ts';
import { Renewals } from './renewals.ts';
import type { Replica } from './replica.ts';
import { Replicas } from './replicas.ts';
import { checkStored, countRecreations, RECREATED } from './stored.ts';
import { Violations, violationsOf } from './violations.ts';
import { Wire } from './wire.ts';

/** Duration of the fault phase. */
const FAULT_MS = 60_000;
/**
 * Maximum time until convergence. A client notices a stalled stream only after 70 s, and the requests that it then
 * sends may be delayed.
 */
const CONVERGENCE_MS = 240_000;
/**
 * Maximum time from a graceful stop of the leader until another replica leads: the running work ends first, and
 * standbys check the lease every five seconds.
 */
const HAND_OVER_MS = 18_000;
/** Maximum time from a change until convergence while no faults are active. */
const SETTLING_MS = 90_000;
/**
 * Durations of the idle phase. The usual one is longer than the lease duration. The long one, in one run of 8, is also
 * longer than the silence timeout of a stream.
 */
const IDLE_MS = 20_000;
const LONG_IDLE = { oneIn: 8, ms: 90_000 };

/** Scenario that tests the runtime: two or three replicas run a program without bugs, and one of them leads. */
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
    RECREATED,
    errorCount(404),
    errorCount(410),
    ...COMMON_FAULTS,
    ...LEADERSHIP_MOMENTS,
  ],
  run: (simulation) => violationsOf(new History(simulation)),
};

class History {
  readonly violations: Violations;
  readonly #simulation: Simulation;
  readonly #server;
  readonly #admin: AdminClient;
  readonly #external: ExternalSystem;
  readonly #eventChecks: EventChecks;
  readonly #replicas: Replicas;
  readonly #managers = new Map<Replica, Manager>();
  readonly #reconciles = new Map<string, number>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.violations = new Violations(simulation);
    const { violations } = this;
    const server = startApiServer(simulation);
    this.#server = server;
    for (const kind of [Widget, Setting, Probe]) server.serve(kind);
    const wire = new Wire<Replica>(server);
    // In a third of the runs, one stream line in 8 is hit by a fault, so that few streamed lists complete.
    const line = simulation.choices.one([USUAL_FAULTS.line, USUAL_FAULTS.line, 8]);
    simulation.network.serve(API_SERVER, wire, { ...USUAL_FAULTS, line });
    const { counts } = simulation;
    const replicas = () => this.#replicas.alive;
    const onAct = checkLeadership(LEASE, {
      server,
      wire,
      violations,
      counts,
      replicas,
      renewals: new Renewals(simulation, server, wire),
      renewMs: TIMES.renewMs,
    });
    checkStored(server, wire, violations);
    countRecreations(server, counts);
    this.#admin = new AdminClient(server);
    this.#external = new ExternalSystem(simulation, server, violations, onAct);
    this.#eventChecks = new EventChecks(server, wire, violations);
    const exclusion = new Exclusion(violations, 'key', replicas);
    simulation.network.faulty = true;
    const observers = {
      simulation,
      violations,
      exclusion,
      external: this.#external,
      eventChecks: this.#eventChecks,
      // Called between a read and the write that is based on it.
      interfere: (name: string, oneIn: number) => {
        if (!simulation.choices.oneIn(oneIn)) return;
        counts.add('another writer interfered');
        this.#admin.merge(ConfigMap, name, { data: { note: simulation.choices.one(['x', 'y']) } });
      },
      probesFail: () => simulation.network.faulty,
      onReconcile: (what: string) => void this.#reconciles.set(what, (this.#reconciles.get(what) ?? 0) + 1),
      onManager: (replica: Replica, manager: Manager) => void this.#managers.set(replica, manager),
    };
    const count = 2 + (simulation.choices.oneIn(4) ? 1 : 0);
    this.#replicas = new Replicas({
      simulation,
      wire,
      count,
      program: (replica) => program(replica, observers),
      onEnd: (replica, why) => {
        checkExitReason(violations, replica, why);
        // An aborted reconcile ends immediately, unless the process was paused. So only a recently paused process may
        // exit because a reconcile has not ended.
        const slackMs = TIMES.leaseMs - TIMES.renewMs;
        if (why.includes(`has not ended within ${slackMs / 1_000} s`) && replica.runningMs > 2 * slackMs)
          violations.add('a former leader becomes a standby', `${replica.name} exited: ${why}`);
      },
    });
  }

  async run(): Promise<void> {
    this.#plan();
    const { network } = this.#simulation;
    await this.#until(FAULT_MS);
    network.faulty = false;
    this.#replicas.heal();
    healStreams(this.#simulation);
    for (const name of WIDGETS) this.#admin.hold(Widget, name, false);
    await this.#converge('converged once faults have stopped', CONVERGENCE_MS);
    if (this.violations.any) return;
    await this.#handOver();
    await this.#finale();
    if (this.violations.any) return;
    await this.#rest();
  }

  /** Schedules changes and faults for the fault phase. */
  #plan(): void {
    const { choices, schedule, counts } = this.#simulation;
    const admin = this.#admin;
    const someTime = (act: () => void) => void schedule.after(choices.pick(FAULT_MS), act);
    for (let round = 6 + choices.pick(10); round > 0; round--) someTime(() => change(admin, choices, round));
    for (let times = choices.pick(5); times > 0; times--)
      someTime(() => this.#replicas.injectFault(choices.pick(this.#replicas.count)));
    for (let times = choices.pick(4); times > 0; times--)
      someTime(() => {
        // Changes objects just before and just after the compaction. If a client is listing again at this time and its
        // list is interrupted, it must not resume from the resource version of such a change.
        for (const round of [20, 21]) change(admin, choices, round);
        counts.add('the watch history was compacted');
        this.#server.compact();
        for (const round of [22, 23]) change(admin, choices, round);
        if (choices.oneIn(2)) this.#restartApiServer();
      });
    // Creates the Probes (objects with failing reconciles) at different times. So one Probe already has a long back-off
    // while the reconciles of another one begin to fail.
    const [first, ...others] = PROBES;
    probe(admin, first);
    for (const name of others) schedule.after(choices.pick(FAULT_MS / 2), () => probe(admin, name));
    const from = choices.pick(FAULT_MS / 2);
    for (let round = choices.pick(12); round > 0; round--)
      schedule.after(from + choices.pick(20_000), () => touch(admin, first, round));
    this.#tickets(choices.pick(4));
  }

  /** Restarts the API server. All watches break, and the clients list again. */
  #restartApiServer(): void {
    const { choices, schedule, counts, network } = this.#simulation;
    counts.add('the API server was restarted');
    network.cut(API_SERVER);
    for (let times = 3; times > 0; times--)
      schedule.after(choices.pick(2_500), () => {
        if (network.faulty) changeWhileListing(this.#admin, choices);
      });
  }

  /** Creates objects with the runtime's client: one call must create at most one object. */
  #tickets(count: number): void {
    const { schedule, choices } = this.#simulation;
    const user = this.#simulation.start('user');
    const client = new Client({ world: user, access: accessTo(), fieldManager: 'user' });
    for (let ticket = 0; ticket < count; ticket++)
      schedule.after(choices.pick(FAULT_MS), () => {
        const metadata = { namespace: 'default', generateName: 'ticket-', name: '' };
        client.create(ConfigMap, { metadata, data: { ticket: `${ticket}` } }).catch(() => undefined);
      });
  }

  async #handOver(): Promise<void> {
    const { choices, schedule } = this.#simulation;
    if (!choices.oneIn(2)) return;
    const leader = this.#replicas.alive.find(({ leading }) => leading);
    if (leader === undefined) return;
    // Triggers reconciles, so that the leader is usually stopped during its work. It must finish the work
    // before it releases the lease.
    for (const name of WIDGETS) this.#admin.merge(Widget, name, { spec: { text: 'before the hand-over' } });
    schedule.after(choices.pick(3_000), () => this.#replicas.stop(leader));
    await this.#until(schedule.now + HAND_OVER_MS);
  }

  /** Changes each object again while no faults are active and no other events could trigger a reconcile. */
  async #finale(): Promise<void> {
    this.#reconciles.clear();
    const terms = this.#terms;
    finale(this.#admin);
    await this.#converge('converged after a change', SETTLING_MS);
    for (const name of WIDGETS) changeQuietly(this.#admin, this.#simulation.choices, name);
    await this.#converge('converged after a change', SETTLING_MS);
    if (this.#terms !== terms) return; // a new leader has reconciled everything again
    for (const [what, times] of this.#reconciles)
      if (what.includes('generation') && times > 1)
        this.violations.add('own writes do not trigger a reconcile', `${what} was reconciled ${times} times`);
  }

  async #rest(): Promise<void> {
    const { schedule, choices } = this.#simulation;
    const terms = this.#terms; // a new leader reconciles everything, which is not a violation
    // Waits until delayed Events of the recorder, and the watch events about them, have arrived.
    await this.#until(schedule.now + 30_000);
    this.#eventChecks.check();
    this.#checkTickets();
    this.#reconciles.clear();
    const writes: string[] = [];
    this.#server.listen(({ resource, key }) => {
      if (resource.kind.plural !== 'leases') writes.push(`${resource.kind.kind} ${key}`);
    });
    await this.#until(schedule.now + (choices.oneIn(LONG_IDLE.oneIn) ? LONG_IDLE.ms : IDLE_MS));
    if (writes.length > 0) this.violations.add('no writes when idle', writes.join(', '));
    if (this.#reconciles.size > 0 && this.#terms === terms)
      this.violations.add('no reconciles when idle', [...this.#reconciles.keys()].join(', '));
  }

  #checkTickets(): void {
    const seen = new Set<string>();
    for (const { data } of this.#server.objects(ConfigMap)) {
      const ticket = textAt(data, 'ticket');
      if (ticket === undefined) continue;
      if (seen.has(ticket))
        this.violations.add('a create request creates one object', `ticket ${ticket} exists twice`);
      seen.add(ticket);
    }
  }

  /** Waits until the stored objects, the external resources and the caches of all replicas have converged. */
  async #converge(invariant: string, withinMs: number): Promise<void> {
    const { schedule } = this.#simulation;
    const until = schedule.now + withinMs;
    let left: string | undefined = 'nothing was checked';
    while (schedule.now < until && left !== undefined && !this.violations.any) {
      await this.#until(Math.min(schedule.now + 5_000, until));
      left = unconverged(this.#server, this.#external) ?? this.#staleCaches();
    }
    if (left !== undefined && !this.violations.any)
      this.violations.add(invariant, `not within ${withinMs / 1_000} s: ${left}`);
  }

  #staleCaches(): string | undefined {
    for (const replica of this.#replicas.alive) {
      const manager = this.#managers.get(replica);
      if (manager === undefined) continue;
      const stale = manager.ready ? staleCache(this.#server, manager) : 'its caches are not synced';
      if (stale !== undefined) return `${replica.name}: ${stale}`;
    }
    return undefined;
  }

  /** Number of times that any replica became leader. */
  get #terms(): number {
    return this.#managers.keys().reduce((sum, { terms }) => sum + terms, 0);
  }

  #until(at: number): Promise<void> {
    return this.#simulation.run({ until: at, done: () => this.violations.any });
  }
}
