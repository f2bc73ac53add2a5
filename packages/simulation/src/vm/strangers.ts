import type { Cloud } from '../cloud/cloud.ts';
import type { CloudServer } from '../cloud/server.ts';
import { CLOUD } from '../cloud/simulated.ts';
import { cutOff, putOutOfOrder } from '../scenario/outage.ts';
import type { Replicas } from '../scenario/replicas.ts';
import type { Simulation } from '../world/simulation.ts';
import { ELSEWHERE, foreignLabels, ownerIn, UNOWNED } from './outside.ts';
import { NAMES, SHARED, TAKEN } from './user.ts';

/** What is done to the cloud past us, by its name in the counts. */
export const STRANGE = [
  'a machine vanished',
  'a machine was deleted by a third party',
  'a machine failed',
  'a machine lost its ownership labels',
  'a name was prohibited',
  'a name was allowed again',
  'a name was taken by a third party',
  'the cloud was down',
  'the cloud answered only with errors',
] as const;

/** Beside those that ambushes call for. */
const MOST = 4;
const OUTAGE_MS = 40_000;

/** Those who use the same cloud and do not know of us, and those who run it. */
export class Strangers {
  readonly #simulation: Simulation;
  readonly #cloud: Cloud;
  readonly #replicas: Replicas;

  constructor(simulation: Simulation, cloud: Cloud, replicas: Replicas) {
    this.#simulation = simulation;
    this.#cloud = cloud;
    this.#replicas = replicas;
  }

  /** Machines that were there before us. */
  settle(): void {
    this.#cloud.add({ name: TAKEN });
    this.#cloud.add({ name: 'elsewhere', labels: foreignLabels(this.#simulation.uuid()) });
    this.#cloud.add({ name: 'unowned', labels: UNOWNED });
  }

  plan(ms: number): void {
    const { choices, schedule } = this.#simulation;
    for (let count = choices.pick(MOST + 1); count > 0; count--)
      schedule.after(choices.pick(ms), () => this.strike());
  }

  strike(): void {
    const { choices, network } = this.#simulation;
    if (!network.faulty) return;
    choices.one([
      () => this.takeAway(this.#oneOfOurs()),
      () => this.takeAway(this.#oneOfOurs()),
      () => this.#fail(this.#oneOfOurs()),
      () => this.#unmark(this.#oneOfOurs()),
      () => this.prohibit(choices.one(WANTED)),
      () => this.#allow(),
      () => this.#takeName(),
      () => this.#outage(),
      () => this.#disorder(),
    ])();
  }

  /** A machine of ours goes, at once or as a deletion does. */
  takeAway(server: CloudServer | undefined): void {
    if (server === undefined || server.state === 'deleting') return;
    if (this.#simulation.choices.oneIn(2)) {
      this.#tell('a machine was deleted by a third party', server.id);
      this.#cloud.beginDelete(server.id, 'somebody');
    } else this.steal(server);
  }

  /** At once. */
  steal(server: CloudServer | undefined): void {
    if (server === undefined) return;
    this.#tell('a machine vanished', server.id);
    this.#cloud.servers.remove(server, 'somebody');
  }

  prohibit(name: string): void {
    this.#tell('a name was prohibited', name);
    this.#cloud.prohibit(name, 'it is the name of a river');
  }

  /** From now on nothing of theirs changes, and machines use as much of their CPU as they do. */
  rest(): void {
    const { choices } = this.#simulation;
    this.#cloud.keepStill();
    this.#cloud.outOfOrder = false;
    for (const name of this.#replicas.names) this.#simulation.network.mend(name, CLOUD);
    if (choices.oneIn(2)) return; // what is prohibited stays so
    for (const name of WANTED) this.#cloud.allow(name);
  }

  #oneOfOurs(): CloudServer | undefined {
    const ours = [...this.#cloud.servers.all()].filter(({ labels }) => ownerIn(labels) !== undefined);
    return ours.length === 0 ? undefined : ours[this.#simulation.choices.pick(ours.length)];
  }

  #fail(server: CloudServer | undefined): void {
    if (server?.state !== 'running') return;
    this.#tell('a machine failed', server.id);
    this.#cloud.fail(server.id, 'it has stopped by itself', 'somebody');
  }

  #unmark(server: CloudServer | undefined): void {
    if (server === undefined) return;
    this.#tell('a machine lost its ownership labels', server.id);
    const labels = this.#simulation.choices.oneIn(3) ? {} : { ...server.labels, ...ELSEWHERE };
    this.#cloud.servers.replace(server, { ...server, labels }, 'somebody');
  }

  #allow(): void {
    for (const name of WANTED) {
      if (!this.#cloud.isProhibited(name)) continue;
      this.#tell('a name was allowed again', name);
      this.#cloud.allow(name);
    }
  }

  #takeName(): void {
    const name = this.#simulation.choices.one(WANTED);
    if (this.#cloud.servers.named(name) !== undefined) return;
    this.#tell('a name was taken by a third party', name);
    this.#cloud.add({ name, labels: foreignLabels('x') });
  }

  /** Mostly longer than a client tries. */
  #outage(): void {
    this.#tell('the cloud was down', 'for all');
    cutOff(this.#simulation, this.#replicas.names, CLOUD, OUTAGE_MS);
  }

  #disorder(): void {
    this.#tell('the cloud answered only with errors', 'for all');
    putOutOfOrder(this.#simulation, this.#cloud, OUTAGE_MS);
  }

  #tell(what: (typeof STRANGE)[number], about: string): void {
    this.#simulation.counts.add(what);
    this.#simulation.note('strangers', `${what}: ${about}`);
  }
}

const WANTED: readonly [string, ...string[]] = [SHARED, ...NAMES.map((name) => `vm-${name}`)];
