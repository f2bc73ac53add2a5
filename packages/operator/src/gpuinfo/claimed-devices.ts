import { keyOf } from '@vmwright/runtime';
import { controllerOf } from '../kubevirt/ownership.ts';
import type { GpuUse } from './candidate.ts';
import { type DeviceGpus, deviceGpusOf } from './devices.ts';
import type { AllocatedDevice, ResourceClaim, ResourceSlice } from './kinds.ts';
import { Multimap } from './multimap.ts';
import { type PodUses, usesIn } from './pod-uses.ts';

interface Claim {
  readonly devices: readonly AllocatedDevice[];
  /** Keys of the pods that use the claim. */
  readonly pods: readonly string[];
}

/** GPUs that DRA drivers publish, by node, and the claims that they are allocated to. */
export class ClaimedDevices {
  readonly #changed: (node: string) => void;
  readonly #pods: Pick<PodUses, 'holderOf'>;
  readonly #slices = new Map<string, ResourceSlice>();
  readonly #slicesOfNode = new Multimap<string, string>();
  readonly #nodesOfPool = new Multimap<string, string>();
  readonly #claims = new Map<string, Claim>();
  readonly #claimsOfPool = new Multimap<string, string>();

  /** @param changed called with each node whose GPUs, or their use, may have changed */
  constructor(pods: Pick<PodUses, 'holderOf'>, changed: (node: string) => void) {
    this.#pods = pods;
    this.#changed = changed;
  }

  onSlice(slice: ResourceSlice, isGone: boolean): void {
    const { name } = slice.metadata;
    this.#dropSlice(name);
    const node = slice.spec?.nodeName;
    if (isGone || slice.spec === undefined || node === undefined) return;
    this.#slices.set(name, slice);
    this.#slicesOfNode.add(node, name);
    this.#nodesOfPool.add(poolKey(slice.spec.driver, slice.spec.pool.name), node);
    this.#changed(node);
  }

  onClaim(claim: ResourceClaim, isGone: boolean): void {
    const key = keyOf(claim.metadata);
    const known = this.#claims.get(key);
    const devices = isGone ? [] : (claim.status?.allocation?.devices?.results ?? []);
    if (known === undefined && devices.length === 0) return;
    this.#claims.delete(key);
    for (const { driver, pool } of known?.devices ?? [])
      this.#claimsOfPool.delete(poolKey(driver, pool), key);
    if (devices.length > 0) this.#claims.set(key, { devices, pods: podsOf(claim) });
    for (const { driver, pool } of devices) this.#claimsOfPool.add(poolKey(driver, pool), key);
    const pools = new Set(
      [...(known?.devices ?? []), ...devices].map((each) => poolKey(each.driver, each.pool)),
    );
    for (const pool of pools) for (const node of this.#nodesOfPool.get(pool)) this.#changed(node);
  }

  /** Returns the GPUs of a node that a DRA driver manages; undefined if there are none. */
  gpusOf(node: string): DeviceGpus | undefined {
    const slices = [...this.#slicesOfNode.get(node)].flatMap((name) => this.#slices.get(name) ?? []);
    return slices.length === 0 ? undefined : deviceGpusOf(slices);
  }

  /**
   * Returns how many GPUs of a node are allocated to claims, by holder (UID of a GPUInfo). If several holders use the
   * same GPU, it counts as used without a holder.
   * @param gpus result of `gpusOf` for the node
   */
  usesOf(node: string, gpus: Pick<DeviceGpus, 'occupiedBy'>): readonly GpuUse[] {
    const holders = new Map<string, string | undefined>();
    for (const claim of this.#claimsOn(node)) {
      const [holder, ...others] = new Set(claim.pods.map((pod) => this.#pods.holderOf(pod)));
      const ofClaim = others.length > 0 ? undefined : holder;
      for (const device of claim.devices)
        for (const gpu of gpus.occupiedBy(device))
          holders.set(gpu, holders.has(gpu) && holders.get(gpu) !== ofClaim ? undefined : ofClaim);
    }
    const uses = new Map<string | undefined, number>();
    for (const holder of holders.values()) uses.set(holder, (uses.get(holder) ?? 0) + 1);
    return usesIn(uses);
  }

  #claimsOn(node: string): readonly Claim[] {
    const pools = [...this.#slicesOfNode.get(node)].flatMap((name) => {
      const spec = this.#slices.get(name)?.spec;
      return spec === undefined ? [] : [poolKey(spec.driver, spec.pool.name)];
    });
    const keys = new Set([...new Set(pools)].flatMap((pool) => [...this.#claimsOfPool.get(pool)]));
    return [...keys].flatMap((key) => this.#claims.get(key) ?? []);
  }

  #dropSlice(name: string): void {
    const known = this.#slices.get(name);
    const node = known?.spec?.nodeName;
    if (known?.spec === undefined || node === undefined) return;
    this.#slices.delete(name);
    this.#slicesOfNode.delete(node, name);
    const pool = poolKey(known.spec.driver, known.spec.pool.name);
    const hasMore = [...this.#slicesOfNode.get(node)].some((other) => {
      const spec = this.#slices.get(other)?.spec;
      return spec !== undefined && poolKey(spec.driver, spec.pool.name) === pool;
    });
    if (!hasMore) this.#nodesOfPool.delete(pool, node);
    this.#changed(node);
  }
}

function poolKey(driver: string, pool: string): string {
  return `${driver}/${pool}`;
}

/** Returns the keys of the pods that a claim is reserved for. If there are none, returns the pod that controls it. */
function podsOf({ metadata, status }: ResourceClaim): readonly string[] {
  const { namespace } = metadata;
  const reserved = (status?.reservedFor ?? []).filter(({ resource }) => resource === 'pods');
  const owner = controllerOf({ metadata });
  const names =
    reserved.length > 0 ? reserved.map(({ name }) => name) : owner?.kind === 'Pod' ? [owner.name] : [];
  return names.map((name) => keyOf({ namespace, name }));
}
