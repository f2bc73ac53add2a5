import type { Cloud } from '../cloud/cloud.ts';
import type { CloudServer } from '../cloud/server.ts';
import { CLOUD } from '../cloud/simulated.ts';
import { failRequests, partition } from '../scenario/outage.ts';
import { atRandomTimes } from '../scenario/random-times.ts';
import type { Replicas } from '../scenario/replicas.ts';
import type { Simulation } from '../world/simulation.ts';
import { ELSEWHERE, foreignLabels, ownerIn, UNOWNED } from './external-resources.ts';
import { NAMES, SHARED, TAKEN } from './user.ts';

/** Counted actions of third parties on the cloud. */
export const THIRD_PARTY_ACTIONS = [
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

/** Maximum number of actions, in addition to those of targeted faults. */
const MAX_ACTIONS = 4;
const OUTAGE_MS = 40_000;

/** Administrators and other users of the cloud, who do not know the operator. */
export class ThirdParties {
  readonly #simulation: Simulation;
  readonly #cloud: Cloud;
  readonly #replicas: Replicas;

  constructor(simulation: Simulation, cloud: Cloud, replicas: Replicas) {
    this.#simulation = simulation;
    this.#cloud = cloud;
    this.#replicas = replicas;
  }

  /** Adds servers that existed before the operator. */
  setUp(): void {
    this.#cloud.add({ name: TAKEN });
    this.#cloud.add({ name: 'elsewhere', labels: foreignLabels(this.#simulation.uuid()) });
    this.#cloud.add({ name: 'unowned', labels: UNOWNED });
  }

  plan(ms: number): void {
    atRandomTimes(this.#simulation, MAX_ACTIONS, ms, () => this.act());
  }

  act(): void {
    const { choices, network } = this.#simulation;
    if (!network.faulty) return;
    choices.one([
      () => this.remove(this.#oneOfOurs()),
      () => this.remove(this.#oneOfOurs()),
      () => this.#fail(this.#oneOfOurs()),
      () => this.#relabel(this.#oneOfOurs()),
      () => this.prohibit(choices.one(WANTED)),
      () => this.#allow(),
      () => this.#takeName(),
      () => this.#outage(),
      () => this.#failAllRequests(),
    ])();
  }

  /** Removes a managed server, either instantly or with a delete request that takes time. */
  remove(server: CloudServer | undefined): void {
    if (server === undefined || server.state === 'deleting') return;
    if (this.#simulation.choices.oneIn(2)) {
      this.#note('a machine was deleted by a third party', server.id);
      this.#cloud.beginDelete(server.id, 'somebody');
    } else this.vanish(server);
  }

  /** Removes a server instantly. */
  vanish(server: CloudServer | undefined): void {
    if (server === undefined) return;
    this.#note('a machine vanished', server.id);
    this.#cloud.servers.remove(server, 'somebody');
  }

  prohibit(name: string): void {
    this.#note('a name was prohibited', name);
    this.#cloud.prohibit(name, 'the name is reserved');
  }

  /** Ends all actions and outages, and freezes the CPU utilization of servers. */
  stop(): void {
    const { choices } = this.#simulation;
    this.#cloud.keepStill();
    this.#cloud.outOfOrder = false;
    for (const name of this.#replicas.names) this.#simulation.network.heal(name, CLOUD);
    if (choices.oneIn(2)) return; // prohibited names stay prohibited
    for (const name of WANTED) this.#cloud.allow(name);
  }

  #oneOfOurs(): CloudServer | undefined {
    const ours = [...this.#cloud.servers.all()].filter(({ labels }) => ownerIn(labels) !== undefined);
    return ours.length === 0 ? undefined : ours[this.#simulation.choices.pick(ours.length)];
  }

  #fail(server: CloudServer | undefined): void {
    if (server?.state !== 'running') return;
    this.#note('a machine failed', server.id);
    this.#cloud.fail(server.id, 'the server has stopped', 'somebody');
  }

  #relabel(server: CloudServer | undefined): void {
    if (server === undefined) return;
    this.#note('a machine lost its ownership labels', server.id);
    const labels = this.#simulation.choices.oneIn(3) ? {} : { ...server.labels, ...ELSEWHERE };
    this.#cloud.servers.replace(server, { ...server, labels }, 'somebody');
  }

  #allow(): void {
    for (const name of WANTED) {
      if (!this.#cloud.isProhibited(name)) continue;
      this.#note('a name was allowed again', name);
      this.#cloud.allow(name);
    }
  }

  #takeName(): void {
    const name = this.#simulation.choices.one(WANTED);
    if (this.#cloud.servers.named(name) !== undefined) return;
    this.#note('a name was taken by a third party', name);
    this.#cloud.add({ name, labels: foreignLabels('x') });
  }

  /** Partitions all replicas from the cloud, usually for longer than a client retries. */
  #outage(): void {
    this.#note('the cloud was down', 'for all replicas');
    partition(this.#simulation, this.#replicas.names, CLOUD, OUTAGE_MS);
  }

  #failAllRequests(): void {
    this.#note('the cloud answered only with errors', 'for all replicas');
    failRequests(this.#simulation, this.#cloud, OUTAGE_MS);
  }

  #note(what: (typeof THIRD_PARTY_ACTIONS)[number], about: string): void {
    this.#simulation.counts.add(what);
    this.#simulation.note('third party', `${what}: ${about}`);
  }
}

const WANTED: readonly [string, ...string[]] = [SHARED, ...NAMES.map((name) => `vm-${name}`)];
