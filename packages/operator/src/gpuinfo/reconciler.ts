import { type Reconcile, requeueAfter } from '@vmwright/runtime';
import type { Allocations } from './allocations.ts';
import { reservationStore } from './ledger.ts';
import { plan } from './plan.ts';
import type { GPUInfo } from './resource.ts';

/**
 * Requeue interval if the allocation has no verdict on the GPUInfo, because the GPUInfo was deleted or re-created
 * during the reconcile.
 */
const RETRY_MS = 1_000;

export interface GpuInfoReconcilerOptions {
  readonly allocations: Allocations;
  /** Namespace of the ConfigMap with the reservations. */
  readonly namespace: string;
  readonly horizonMs: number;
}

/** Reconciles one GPUInfo: observe, plan, report. The reservation is stored before the status. */
export class GpuInfoReconciler {
  readonly #options: GpuInfoReconcilerOptions;

  constructor(options: GpuInfoReconcilerOptions) {
    this.#options = options;
  }

  readonly reconcile: Reconcile<GPUInfo> = async (info, { client, now, setStatus, event }) => {
    const { allocations, namespace, horizonMs } = this.#options;
    const { facts, allocation } = await allocations.current(reservationStore(client, namespace), now);
    const verdict = allocation.verdicts.get(info.metadata.uid ?? '');
    if (verdict === undefined) return requeueAfter(RETRY_MS);
    const { status, events, requeueAfterMs } = plan(info, { verdict, facts, allocation, horizonMs }, now());
    const reported = await setStatus(info, status);
    for (const input of events) event(reported, input);
    return requeueAfterMs === undefined ? undefined : requeueAfter(requeueAfterMs);
  };
}
