import {
  type Caches,
  type Client,
  type Reconcile,
  type ReconcileContext,
  type Result,
  requeueAfter,
} from '@vmwright/runtime';
import { isNewest } from '../kubevirt/newest.ts';
import type { Executor, ExecutorOptions } from './executor.ts';
import { type ImageLimits, type Observed, observe } from './observe.ts';
import { plan } from './plan.ts';
import { VMDiskImage } from './resource.ts';
import type { SyncSlots } from './sync-slots.ts';

/**
 * Maximum number of plans in one reconcile. A sync needs five: one each to queue the image, to start the attempt and to
 * create its DataVolume, and two to remove the children of an earlier attempt.
 */
const MAX_TURNS = 12;
/** Requeue interval if the caches do not show the result of a write yet. The watch event usually comes first. */
const RETRY_MS = 1_000;

export interface ImageReconcilerOptions extends Pick<ExecutorOptions, 'metrics'> {
  readonly caches: Caches;
  readonly slots: SyncSlots;
  readonly limits: ImageLimits;
  readonly executor: Executor;
}

/** Brings one image to its desired state: observes, plans, reports, and executes. */
export class ImageReconciler {
  readonly #options: ImageReconcilerOptions;

  constructor(options: ImageReconcilerOptions) {
    this.#options = options;
  }

  readonly reconcile: Reconcile<VMDiskImage> = async (found, context) => {
    const { executor, metrics } = this.#options;
    let image = found;
    let isCurrent = false;
    let known = await this.#known(image, context.client);
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const observed = await this.#observe(image, known, context);
      const next = plan(image, observed, context.now());
      const stored = await context.setStatus(image, next.status);
      // A new resourceVersion shows that the status was written. The write required the old resourceVersion, so `image`
      // was the newest version.
      isCurrent ||= stored.metadata.resourceVersion !== image.metadata.resourceVersion;
      image = stored;
      for (const event of next.events ?? []) context.event(image, event);
      if (next.failure !== undefined) metrics.failed(next.failure);
      if (next.actions.length === 0) return resultOf(next.requeueAfterMs);
      if (next.actions.some(({ type }) => type !== 'acquireSlot')) {
        isCurrent ||= await isNewest(VMDiskImage, image, context.client);
        if (!isCurrent) return requeueAfter(RETRY_MS);
      }
      const { rejection: _, ...before } = known;
      known = before;
      for (const action of next.actions) {
        const result = await executor.execute(action, image, context);
        if (result === 'pruned') return undefined;
        if (result === 'wait') return requeueAfter(RETRY_MS);
        known = { ...known, ...result };
      }
    }
    return requeueAfter(RETRY_MS);
  };

  async #known(
    { metadata: { uid = '' } }: VMDiskImage,
    client: Client,
  ): Promise<Pick<Observed, 'limits' | 'slot' | 'rejection'>> {
    const { slots, limits } = this.#options;
    return { limits, slot: (await slots.holds(uid, client)) ? 'held' : 'none' };
  }

  #observe(
    image: VMDiskImage,
    known: Pick<Observed, 'limits' | 'slot' | 'rejection'>,
    { client }: ReconcileContext<VMDiskImage>,
  ): Promise<Observed> {
    return observe(image, known, this.#options.caches, client);
  }
}

function resultOf(requeueAfterMs: number | undefined): Result {
  return requeueAfterMs === undefined ? undefined : requeueAfter(requeueAfterMs);
}
