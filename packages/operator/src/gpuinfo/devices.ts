import type { AllocatedDevice, Device, ResourceSlice } from './kinds.ts';

/* GPUs that a DRA driver manages (resource.k8s.io/v1). */

/** Names of the device attributes that this module reads. A driver may put its own name before them. */
export const MODEL_ATTRIBUTES: ReadonlySet<string> = new Set([
  'productName',
  'model',
  'type',
  'uuid',
  'parentUUID',
]);

/**
 * Whether a DRA driver manages accelerators, according to the prefix of its name: `gpu.nvidia.com`, `gpu.amd.com`,
 * `gaudi.intel.com`. Drivers of other devices, such as `compute-domain.nvidia.com` or `dra.net`, have other prefixes.
 */
export function isGpuDriver(driver: string): boolean {
  return /^(gpu|vgpu|gaudi|tpu|npu|xpu|neuron|accelerator)\./.test(driver);
}

/** GPUs of one node that a DRA driver manages. */
export interface DeviceGpus {
  /** Device class for claims. Each driver installs a device class with its own name. */
  readonly deviceClass: string;
  readonly models: readonly string[];
  /** Number of usable GPUs. */
  readonly total: number;
  /**
   * Returns the ids of the GPUs that an allocated device occupies. Returns an empty list if the allocation has
   * administrative access, which is meant for monitoring, or if the device belongs to another driver or node.
   */
  readonly occupiedBy: (device: AllocatedDevice) => readonly string[];
}

/**
 * Counts the GPUs in the slices of one node. A driver may publish one GPU several times: whole, as MIG partitions, and
 * for passthrough. The attribute `type` tells them apart. If the driver publishes whole GPUs, only those count. A
 * partition then occupies the whole GPU that its attribute `parentUUID` names.
 * @returns undefined if no driver publishes GPUs; if several drivers do, the GPUs of the first driver by name
 */
export function deviceGpusOf(slices: readonly ResourceSlice[]): DeviceGpus | undefined {
  const specs = slices.flatMap(({ spec }) => (spec !== undefined && isGpuDriver(spec.driver) ? [spec] : []));
  const [driver] = specs.map((spec) => spec.driver).toSorted();
  if (driver === undefined) return undefined;
  const pools = Map.groupBy(
    specs.filter((spec) => spec.driver === driver),
    ({ pool }) => pool.name,
  );
  const published = [...pools].flatMap(([pool, ofPool]) =>
    currentDevices(ofPool).map((device) => ({ id: idOf({ pool, device: device.name }), device })),
  );
  const whole = published.filter(({ device }) => attribute(device, 'type') === 'gpu');
  const gpus = whole.length > 0 ? whole : published;
  if (gpus.length === 0) return undefined;
  const byUuid = new Map(gpus.map(({ id, device }) => [attribute(device, 'uuid') ?? id, id]));
  const occupied = new Map<string, string>(
    published.flatMap(({ id, device }) => {
      const uuid = attribute(device, 'parentUUID') ?? attribute(device, 'uuid');
      const gpu = gpus.some((each) => each.id === id) ? id : byUuid.get(uuid ?? '');
      return gpu === undefined ? [] : [[id, gpu]];
    }),
  );
  const models = gpus.flatMap(
    ({ device }) => attribute(device, 'productName') ?? attribute(device, 'model') ?? [],
  );
  return {
    deviceClass: driver,
    models: [...new Set(models)].toSorted(),
    total: gpus.filter(({ device }) => isUsable(device)).length,
    occupiedBy: (device) => {
      const gpu = device.driver === driver && !device.adminAccess ? occupied.get(idOf(device)) : undefined;
      return gpu === undefined ? [] : [gpu];
    },
  };
}

/**
 * Returns the devices of the newest complete generation of a pool: the newest one with all its slices. If none is
 * complete, returns the devices of the newest generation. While a driver replaces its slices, slices of both
 * generations exist.
 */
function currentDevices(slices: readonly NonNullable<ResourceSlice['spec']>[]): readonly Device[] {
  const generations = [...Map.groupBy(slices, ({ pool }) => pool.generation)].toSorted(([a], [b]) => b - a);
  const complete = generations.find(([, each]) => each.length >= (each[0]?.pool.resourceSliceCount ?? 1));
  const [, current = []] = complete ?? generations[0] ?? [];
  return current.flatMap(({ devices = [] }) => devices);
}

function idOf({ pool, device }: Pick<AllocatedDevice, 'pool' | 'device'>): string {
  return `${pool}/${device}`;
}

/** Returns a string attribute. Drivers may qualify its name: `gpu.nvidia.com/productName`. */
function attribute({ attributes = {} }: Device, name: string): string | undefined {
  const key = Object.keys(attributes).find((each) => each === name || each.endsWith(`/${name}`));
  return key === undefined ? undefined : attributes[key]?.string;
}

function isUsable({ taints = [] }: Device): boolean {
  return !taints.some(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute');
}
