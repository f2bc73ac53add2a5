import type { Logger, Manager, World } from '@vmwright/runtime';
import type { GpuInfoSettings } from '../settings/gpuinfo.ts';
import type { ComputeFacts } from '../vcenter/compute-facts.ts';
import { admitPods } from './admission.ts';
import { controlGpuInfos } from './controller.ts';
import { Pod } from './kinds.ts';
import { FACT_KINDS, NodeFacts } from './node-facts.ts';
import { CalendarFile } from './time-sources/calendar-file.ts';

export interface GpuInfoOptions {
  readonly world: World;
  readonly log: Logger;
  /** Namespace of the operator. */
  readonly namespace: string;
  /** Namespaces that the operator watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
  readonly settings: GpuInfoSettings;
  /** Hosts and machines of all vCenters; undefined without a vCenter. */
  readonly compute: ComputeFacts | undefined;
}

/**
 * Adds GPUInfos to the manager: the facts about nodes, the controller, and the webhook for pods that use a reservation.
 * @returns a resource; disposing of it ends the collection of facts and the watch of the calendar file
 */
export async function addGpuInfos(manager: Manager, options: GpuInfoOptions): Promise<Disposable> {
  using stack = new DisposableStack();
  const { world, log, namespace, namespaces, settings, compute } = options;
  const { seed, horizonMs } = settings;
  const { caches, client } = manager;
  const calendar = await openCalendar(stack, manager, options);
  const facts = stack.use(
    new NodeFacts({ clock: world, caches, compute, calendar, namespaces, simulationSeed: seed }),
  );
  if (seed !== undefined)
    log.warn({ seed }, 'GPUs and maintenance are simulated with random values (--gpu-source=simulated)');
  manager.admit(Pod, admitPods({ caches, client, clock: world, namespace }));
  controlGpuInfos(manager, { namespace, namespaces, facts, reads: FACT_KINDS, horizonMs });
  return stack.move();
}

async function openCalendar(
  stack: DisposableStack,
  { registry }: Manager,
  { world, log, settings: { calendar: path } }: GpuInfoOptions,
): Promise<CalendarFile | undefined> {
  if (path === undefined) return undefined;
  const calendar = new CalendarFile({ path, clock: world, log, registry });
  await calendar.read();
  const stop = new AbortController();
  stack.defer(() => stop.abort());
  // Watched on every replica, so that a standby that becomes the leader decides with the current calendar.
  void calendar.watch(stop.signal);
  return calendar;
}
