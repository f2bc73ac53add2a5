import type { Caches, Clock, Kind, KubeObject, Timer } from '@vmwright/runtime';
import { type ComputeChange, type ComputeFacts, NO_VSPHERE } from '../vcenter/compute-facts.ts';
import { Boundary } from './boundary.ts';
import { configureCaches } from './caches.ts';
import type { Candidate, Facts, GpuPool, GpuUse, Warning } from './candidate.ts';
import { candidateOf, type NodeResult, usageOf } from './candidate-of.ts';
import { ClaimedDevices } from './claimed-devices.ts';
import { type FoundGpus, hostUses } from './gpus.ts';
import { Job, JobSet, Node, NodeClaim, Pod, ResourceClaim, ResourceSlice } from './kinds.ts';
import { isSameSystem, machineOf, vcenterOf } from './machine-of.ts';
import { NodeClaims } from './node-claims.ts';
import { NodeLinks } from './node-links.ts';
import { PodUses } from './pod-uses.ts';
import { GPUInfo } from './resource.ts';
import { ReportedStarts, simulated, simulationChangesAt } from './simulated.ts';
import type { CalendarFile } from './time-sources/calendar-file.ts';
import { mergedWarnings } from './warnings.ts';

/** Kinds that the facts come from. A controller that uses them declares them in `reads`. */
export const FACT_KINDS = [Node, Pod, Job, JobSet, ResourceSlice, ResourceClaim, NodeClaim] as const;

export interface NodeFactsOptions {
  readonly clock: Clock;
  readonly caches: Caches;
  /** @default no vCenter: nodes are judged by what Kubernetes knows */
  readonly compute?: ComputeFacts | undefined;
  /** @default no calendar */
  readonly calendar?: Pick<CalendarFile, 'calendar' | 'problem' | 'subscribe'> | undefined;
  /** Seed for simulated GPUs and maintenance. @default GPUs and maintenance are not simulated */
  readonly simulationSeed?: string | undefined;
  /** Namespaces that the caches are limited to. @default all */
  readonly namespaces?: readonly string[] | undefined;
}

/** Delay from a change to the call of the subscribers. One call covers all changes during the delay. */
const COALESCE_MS = 50;

interface NodeState {
  readonly node: Node;
  result: NodeResult | undefined;
  /**
   * Name of the last VM that the node had. Forgotten when the node is created again, or its provider id or UUID
   * changes.
   */
  machineName: string | undefined;
  /** Fingerprint of the facts that decisions depend on. It changes if and only if a decision can change. */
  text: string;
}

/**
 * Facts about all nodes, kept current by caches and change notifications. A change recomputes only the nodes that it
 * can affect:
 * - An ESXi host affects the nodes on the host.
 * - A VM affects its node, and all nodes that were not matched with a VM by UUID.
 * - The calendar affects all nodes. So does a vCenter when its facts become stale or current.
 * - Any other object affects one node.
 *
 * Guarantees:
 * - At every call, `facts` reflects every change that the caches have delivered.
 * - `version` increases with every change that can affect a decision. The start and the end of maintenance are such
 *   changes. A change of only the CPU or memory usage is not.
 * - Subscribers are called within 50 ms after such a change. One call covers all changes during this time.
 *
 * Assumptions: the caches of `FACT_KINDS` have synced before the first decision.
 */
export class NodeFacts implements Disposable {
  readonly #options: NodeFactsOptions;
  readonly #compute: ComputeFacts;
  readonly #pods: PodUses;
  readonly #devices: ClaimedDevices;
  readonly #nodes = new Map<string, NodeState>();
  readonly #links = new NodeLinks();
  /** Starts of simulated maintenance that statuses report. A reserved node keeps the reported start. */
  readonly #reportedStarts = new ReportedStarts();
  readonly #nodeClaims = new NodeClaims((node) => this.#invalidate(node));
  /** Nodes to recompute before the next read. */
  readonly #dirty = new Set<string>();
  /** Nodes whose usage has to be read again. */
  readonly #usageDirty = new Set<string>();
  readonly #subscribers = new Set<() => void>();
  readonly #subscriptions = new DisposableStack();
  #version = 0;
  /** Version at the last notification of the subscribers. */
  #notified = 0;
  #snapshot: Facts | undefined;
  #jobs: Facts['jobs'] = new Map();
  #areJobsDirty = false;
  #generalWarnings: readonly Warning[] = [];
  #notification: Timer | undefined;
  /** Next time when maintenance begins or ends. */
  readonly #boundary: Boundary;

  constructor(options: NodeFactsOptions) {
    this.#options = options;
    const { caches, compute = NO_VSPHERE, calendar } = options;
    this.#compute = compute;
    this.#boundary = new Boundary(options.clock, () => this.#refresh());
    this.#pods = new PodUses({
      changed: (node) => this.#invalidate(node),
      usageChanged: (node) => this.#invalidateUsage(node),
      jobsChanged: () => {
        this.#areJobsDirty = true;
        this.#schedule();
      },
    });
    this.#devices = new ClaimedDevices(this.#pods, (node) => this.#invalidate(node));
    configureCaches(caches);
    this.#follow(GPUInfo, (info, isGone) => {
      this.#pods.onInfo(info, isGone);
      if (options.simulationSeed === undefined) return;
      for (const node of this.#reportedStarts.onInfo(info, isGone)) this.#invalidate(node);
    });
    this.#follow(Job, (job, isGone) => this.#pods.onJob(job, isGone));
    this.#follow(JobSet, (jobSet, isGone) => this.#pods.onJobSet(jobSet, isGone));
    this.#follow(ResourceSlice, (slice, isGone) => this.#devices.onSlice(slice, isGone));
    this.#follow(ResourceClaim, (claim, isGone) => this.#devices.onClaim(claim, isGone));
    this.#follow(NodeClaim, (claim, isGone) => this.#nodeClaims.onClaim(claim, isGone));
    this.#follow(Node, (node, isGone) => this.#onNode(node, isGone));
    this.#subscriptions.defer(
      caches.get(Pod).subscribe((event) => {
        this.#pods.onPod(event.key, event.before, event.type === 'removed' ? undefined : event.object);
      }),
    );
    this.#subscriptions.defer(compute.subscribe((change) => this.#onCompute(change)));
    if (calendar !== undefined) this.#subscriptions.defer(calendar.subscribe(() => this.#invalidateAll()));
    this.#generalWarnings = this.#currentWarnings();
  }

  /** The facts as they are now. */
  get facts(): Facts {
    this.#refresh();
    this.#snapshot ??= this.#build();
    return this.#snapshot;
  }

  /** Version of the facts as they are now. Unlike `facts`, does not copy them. */
  get version(): number {
    this.#refresh();
    return this.#version;
  }

  /** Calls the listener after changes that can affect a decision. @returns a function that ends the subscription */
  subscribe(listener: () => void): () => void {
    this.#subscribers.add(listener);
    return () => void this.#subscribers.delete(listener);
  }

  [Symbol.dispose](): void {
    this.#subscriptions.dispose();
    this.#notification?.cancel();
    this.#boundary[Symbol.dispose]();
    this.#subscribers.clear();
  }

  #follow<T extends KubeObject>(kind: Kind<T>, apply: (object: T, isGone: boolean) => void): void {
    this.#subscriptions.defer(
      this.#options.caches.get(kind).subscribe((event) => {
        // The watch missed the deletion of an earlier object with the same name, so the deletion is applied first.
        if (event.replaces && event.before !== undefined) apply(event.before, true);
        apply(event.object, event.type === 'removed');
      }),
    );
  }

  #onNode(node: Node, isGone: boolean): void {
    const { name } = node.metadata;
    const known = this.#nodes.get(name);
    if (isGone) {
      if (known === undefined) return;
      this.#links.delete(name, known.result);
      this.#nodes.delete(name);
      this.#change();
      return;
    }
    const { result, text = '' } = known ?? {};
    const machineName = known && isSameSystem(known.node, node) ? known.machineName : undefined;
    this.#nodes.set(name, { node, result, machineName, text });
    this.#invalidate(name);
  }

  #onCompute({ hosts, machines, usage, isStalenessChanged }: ComputeChange): void {
    if (isStalenessChanged) this.#invalidateAll();
    for (const host of hosts) for (const node of this.#links.onHost(host)) this.#invalidate(node);
    for (const machine of machines) for (const node of this.#links.ofMachine(machine)) this.#invalidate(node);
    if (machines.size > 0) for (const node of this.#links.provisional) this.#invalidate(node);
    for (const machine of usage)
      for (const node of this.#links.ofMachine(machine)) this.#invalidateUsage(node);
  }

  #invalidate(node: string): void {
    if (!this.#nodes.has(node)) return;
    this.#dirty.add(node);
    this.#snapshot = undefined;
    this.#schedule();
  }

  /** Marks the usage of a node to be read again. Does not notify subscribers. */
  #invalidateUsage(node: string): void {
    this.#usageDirty.add(node);
  }

  #invalidateAll(): void {
    for (const node of this.#nodes.keys()) this.#dirty.add(node);
    this.#snapshot = undefined;
    this.#schedule();
  }

  #change(): void {
    this.#version += 1;
    this.#snapshot = undefined;
    this.#schedule();
  }

  #schedule(): void {
    this.#notification ??= this.#options.clock.after(COALESCE_MS, () => {
      this.#notification = undefined;
      this.#refresh();
      if (this.#version === this.#notified) return;
      this.#notified = this.#version;
      for (const subscriber of this.#subscribers) subscriber();
    });
  }

  /** Recomputes what has changed since the last call. */
  #refresh(): void {
    const isCrossed = this.#crossBoundary();
    const isDirty = this.#dirty.size > 0;
    let isChanged = isCrossed;
    for (const name of this.#dirty) {
      const state = this.#nodes.get(name);
      if (state !== undefined && this.#recompute(name, state)) isChanged = true;
    }
    const isUsageChanged = [...this.#usageDirty].filter((name) => this.#refreshUsage(name)).length > 0;
    this.#dirty.clear();
    this.#usageDirty.clear();
    if (this.#refreshJobs()) isChanged = true;
    if (this.#refreshWarnings()) isChanged = true;
    if (isChanged) this.#change();
    else if (isUsageChanged) this.#updateUsage();
    if (isDirty || isCrossed) this.#armBoundary();
  }

  /** @returns whether the usage of the node has changed */
  #refreshUsage(name: string): boolean {
    const state = this.#nodes.get(name);
    if (state?.result === undefined || this.#dirty.has(name)) return false;
    const { candidate } = state.result;
    const usage = usageOf(machineOf(state.node, this.#compute).machine, this.#pods.requestsOn(name));
    const { cpuUsage, memoryUsage } = candidate;
    if (usage.cpuUsage === cpuUsage && usage.memoryUsage === memoryUsage) return false;
    state.result = { ...state.result, candidate: { ...candidate, ...usage } };
    return true;
  }

  /** Copies the usage into the snapshot, which is otherwise current. */
  #updateUsage(): void {
    if (this.#snapshot === undefined) return;
    const candidates = this.#snapshot.candidates.map(
      (candidate) => this.#nodes.get(candidate.name)?.result?.candidate ?? candidate,
    );
    this.#snapshot = { ...this.#snapshot, candidates };
  }

  /** Recomputes the facts of a node. @returns whether a decision can change */
  #recompute(name: string, state: NodeState): boolean {
    const { clock, simulationSeed: seed } = this.#options;
    const now = clock.now();
    const result = this.#resultOf(state, now);
    const next = seed === undefined ? result : { ...result, ...this.#simulated(result.candidate, seed, now) };
    this.#links.delete(name, state.result);
    this.#links.add(name, next);
    state.result = next;
    state.machineName = next.machineName ?? state.machineName;
    const { cpuUsage: _cpu, memoryUsage: _memory, ...decisive } = next.candidate;
    const text = JSON.stringify([decisive, next.pool, next.warnings]);
    if (text === state.text) return false;
    state.text = text;
    return true;
  }

  #simulated(candidate: Candidate, seed: string, now: number) {
    return simulated(candidate, seed, now, this.#reportedStarts.of(candidate.name, now));
  }

  #resultOf({ node, machineName }: NodeState, now: number): NodeResult {
    const { calendar, simulationSeed } = this.#options;
    const { name } = node.metadata;
    const devices = this.#devices.gpusOf(name);
    const usesOf = ({ origin, resource = '', pool }: FoundGpus): readonly GpuUse[] => {
      if (origin === 'resource') return this.#pods.usesOf(name, resource);
      if (origin === 'devices' && devices !== undefined) return this.#devices.usesOf(name, devices);
      if (origin === 'host') return hostUses(this.#compute.host(pool.slice('host/'.length)));
      return [];
    };
    return candidateOf(
      {
        node,
        compute: this.#compute,
        machineBefore: machineName,
        devices,
        nodeClaims: this.#nodeClaims.of(name),
        calendar: calendar && (calendar.calendar ?? 'unread'),
        isSimulated: simulationSeed !== undefined,
        requests: this.#pods.requestsOn(name),
        usesOf,
      },
      now,
    );
  }

  #refreshJobs(): boolean {
    if (!this.#areJobsDirty) return false;
    this.#areJobsDirty = false;
    const jobs = this.#pods.jobs();
    const isChanged = JSON.stringify([...jobs]) !== JSON.stringify([...this.#jobs]);
    this.#jobs = jobs;
    return isChanged;
  }

  #refreshWarnings(): boolean {
    const warnings = this.#currentWarnings();
    if (JSON.stringify(warnings) === JSON.stringify(this.#generalWarnings)) return false;
    this.#generalWarnings = warnings;
    return true;
  }

  /** Warnings that do not come from a single node. */
  #currentWarnings(): readonly Warning[] {
    const { calendar, namespaces, simulationSeed } = this.#options;
    const stale = this.#compute.staleVcenters.map((name) => ({
      message: `the facts of vCenter '${name}' are not current`,
      nodes: this.#nodesOn(name),
    }));
    if (simulationSeed !== undefined) return stale;
    const limited =
      namespaces &&
      `pods outside the namespaces ${namespaces.join(', ')} are not watched; the GPUs that they use count as free`;
    const general = [calendar?.problem, limited].flatMap((message) => (message ? [{ message }] : []));
    return [...stale, ...this.#links.warnings, ...general];
  }

  /** Returns the nodes whose VM is, or may be, in a vCenter. */
  #nodesOn(vcenter: string): readonly string[] {
    return [...this.#nodes]
      .flatMap(([name, { result }]) => {
        const isConcerned =
          result?.machineId === undefined ? result?.isProvisional : vcenterOf(result.machineId) === vcenter;
        return isConcerned ? [name] : [];
      })
      .toSorted();
  }

  #build(): Facts {
    const states = [...this.#nodes.values()].flatMap(({ result }) => result ?? []);
    const pools = new Map<string, GpuPool>();
    for (const { pool } of states) if (pool !== undefined) pools.set(pool.id, pool);
    const ofNodes = states.flatMap(({ candidate: { name }, warnings }) =>
      warnings.map((message) => ({ message, nodes: [name] })),
    );
    return {
      version: this.#version,
      candidates: states.map(({ candidate }) => candidate).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      pools,
      jobs: this.#jobs,
      warnings: mergedWarnings([...this.#generalWarnings, ...ofNodes]),
      isSimulated: this.#options.simulationSeed !== undefined,
    };
  }

  /**
   * Returns whether maintenance has begun or ended since the last call. If facts are simulated, also returns true if
   * midnight has passed since the last call. Marks the nodes that must be recomputed for this reason.
   */
  #crossBoundary(): boolean {
    const { clock, simulationSeed } = this.#options;
    if (!this.#boundary.cross()) return false;
    const now = clock.now();
    for (const [name, { result }] of this.#nodes) {
      const { maintenance = [] } = result?.candidate ?? {};
      const hasEnded = maintenance.some(({ endsAt = Number.POSITIVE_INFINITY }) => endsAt <= now);
      if (hasEnded || simulationSeed !== undefined) this.#dirty.add(name);
    }
    return true;
  }

  #armBoundary(): void {
    const { clock, simulationSeed } = this.#options;
    const now = clock.now();
    let at = simulationSeed === undefined ? Number.POSITIVE_INFINITY : simulationChangesAt(now);
    for (const { result } of this.#nodes.values())
      for (const { startsAt, endsAt = 0 } of result?.candidate.maintenance ?? []) {
        if (startsAt > now) at = Math.min(at, startsAt);
        if (endsAt > now) at = Math.min(at, endsAt);
      }
    this.#boundary.set(at);
  }
}
