import { budget, type Cluster, field, type KubeObject, type Part } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { installed, SYSTEM } from './installed.ts';
import { audit, createMachine, IMAGES, imageSpec } from './kubevirt-world.ts';

const MACHINES_AT_ONCE = budget(60, 300);
const IMAGES_AT_ONCE = budget(6, 20);
const LIMIT = budget(3, 10);
/**
 * Number of machines that run. Each start uses two CPU cores for a second, so the other machines are prepared but stay
 * stopped.
 */
const RUNNING = 10;
/**
 * Maximum writes of the operator per VirtualMachine: finalizer, five status writes, disk, Secret, machine, and an
 * event.
 */
const WRITES_EACH = 10;
/**
 * Maximum writes of the operator per image: status, sync slot, disk, snapshot and events. The status is also written
 * when the references to the image change.
 */
const WRITES_EACH_IMAGE = 30;
/** Maximum writes that do not depend on the number of objects: the Lease and the webhook certificates. */
const OTHER_WRITES = 100;

test(`${MACHINES_AT_ONCE} VirtualMachines on ${IMAGES_AT_ONCE} images converge with at most ${LIMIT} image syncs at a time and few writes`, async () => {
  await using stack = new AsyncDisposableStack();
  const env = await installed(stack, {
    kubevirt: true,
    args: [`--image-sync-concurrency=${LIMIT}`],
  });
  const { cluster } = env.controlPlane;
  await cluster.kubectl(['create', 'namespace', 'vmdi-farm']);
  const syncs = new Syncs(cluster);
  const names = Array.from({ length: MACHINES_AT_ONCE }, (_, i) => i);
  const create = async () => {
    for (let i = names.pop(); i !== undefined; i = names.pop()) {
      const image = { name: `image-${i % IMAGES_AT_ONCE}`, namespace: 'vmdi-farm' };
      const ignoreOnDeploy = i >= RUNNING;
      await createMachine(cluster, {
        name: `many-${i}`,
        namespace: 'default',
        image,
        ignoreOnDeploy,
        template: imageSpec(),
      });
    }
  };
  await Promise.all(Array.from({ length: 8 }, create));
  await expect
    .poll(async () => (await audit(cluster)).problems.length, { timeout: 300_000, interval: 1_000 })
    .toBe(0);
  const { machines, images } = await audit(cluster);
  expect(machines).toHaveLength(MACHINES_AT_ONCE);
  expect(images).toHaveLength(IMAGES_AT_ONCE);
  await expect.poll(() => syncs.finished).toBe(IMAGES_AT_ONCE); // the watch may be behind
  expect(syncs.most).toBeLessThanOrEqual(LIMIT);
  expect(syncs.mostSlots).toBeLessThanOrEqual(LIMIT);
  expect(syncs.mostSlots).toBeGreaterThan(1);

  const writes = await writesOf(env.metrics, env.operator);
  console.log(`writes of the operator per VirtualMachine: ${(writes / MACHINES_AT_ONCE).toFixed(1)}`);
  expect(writes).toBeLessThanOrEqual(
    WRITES_EACH * MACHINES_AT_ONCE + WRITES_EACH_IMAGE * IMAGES_AT_ONCE + OTHER_WRITES,
  );
}, 600_000);

/** Watches images and the ConfigMap of the sync slots, and records the maximum of concurrent syncs. */
class Syncs {
  /** Maximum number of images in the phase Syncing. */
  most = 0;
  /** Maximum number of sync slots that images held at the same time. */
  mostSlots = 0;
  readonly #phases = new Map<string, unknown>();
  readonly #ready = new Set<string>();

  constructor({ api }: Cluster) {
    const follow = async (path: string, see: (object: KubeObject) => void) => {
      for (;;) for await (const { object } of api.watch(path, new AbortController().signal)) see(object);
    };
    // The watches run until the API server stops, and then fail; this error is ignored.
    follow(`${IMAGES}/vmdiskimages`, (image) => this.#seeImage(image)).catch(() => undefined);
    const slots = `/api/v1/namespaces/${SYSTEM}/configmaps?fieldSelector=metadata.name=vmwright-image-syncs`;
    follow(slots, (map) => {
      const data = field(map, 'data');
      const count = typeof data === 'object' && data !== null ? Object.keys(data).length : 0;
      this.mostSlots = Math.max(this.mostSlots, count);
    }).catch(() => undefined);
  }

  /** Number of images that were Ready at some time. */
  get finished(): number {
    return this.#ready.size;
  }

  #seeImage(image: KubeObject): void {
    const phase = field(image, 'status', 'phase');
    this.#phases.set(image.metadata.uid, phase);
    if (phase === 'Ready') this.#ready.add(image.metadata.uid);
    const syncing = [...this.#phases.values()].filter((each) => each === 'Syncing').length;
    this.most = Math.max(this.most, syncing);
  }
}

/** Returns the number of writes that the operator has sent to the API server. */
async function writesOf(metrics: (replica: Part) => Promise<string>, operator: Part): Promise<number> {
  let sum = 0;
  for (const [, labels = '', count] of (await metrics(operator)).matchAll(
    /^rest_client_requests_total\{([^}]*)\} (\d+)/gm,
  ))
    if (/method="(POST|PUT|PATCH|DELETE)"/.test(labels)) sum += Number(count);
  return sum;
}
