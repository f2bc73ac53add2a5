import { field, type KubeObject } from '../../kubernetes/api.ts';
import { notRunning, POD_RUNNING } from './data-volume-status.ts';
import type { CdiCaches, PopulatedVolume } from './populated-volume.ts';

/**
 * Annotation on a VolumeSnapshot. With `hang`, clones of the snapshot stay in progress until the annotation is removed.
 */
const ANNOTATION = 'testbed.vmwright.dev/clone';

/** Snapshot or claim that a DataVolume is cloned from. */
export interface CloneSource {
  readonly kind: 'snapshot' | 'pvc';
  readonly name: string;
  /** Returns the current state of the source, or undefined if it does not exist. */
  readonly get: () => KubeObject | undefined;
}

/** Returns the source that a DataVolume is cloned from, or undefined if it is not a clone. */
export function cloneSourceOf(volume: KubeObject, caches: CdiCaches): CloneSource | undefined {
  for (const kind of ['snapshot', 'pvc'] as const) {
    const source = field(volume, 'spec', 'source', kind);
    if (source === undefined) continue;
    const name = String(field(source, 'name'));
    const namespace = field(source, 'namespace') ?? volume.metadata.namespace;
    const mirror = kind === 'snapshot' ? caches.snapshots : caches.claims;
    const isSource = ({ metadata }: KubeObject) => metadata.name === name && metadata.namespace === namespace;
    return { kind, name, get: () => mirror.find(isSource) };
  }
  return undefined;
}

/**
 * Stand-in for CDI's clones. As in CDI, a clone never fails because of a missing source. It waits until the source
 * exists; until then, the condition Running is False, and an event names the missing source.
 */
export async function cloneData(volume: PopulatedVolume, source: CloneSource): Promise<void> {
  const phase = source.kind === 'snapshot' ? 'CloneFromSnapshotSourceInProgress' : 'CSICloneInProgress';
  const missing = () => source.get() === undefined;
  if (missing()) {
    await volume.report({ phase: 'CloneScheduled', running: notRunning('Pending', 'Clone Pending') });
    await volume.warn('CloneWithoutSource', `The source ${source.kind} ${source.name} doesn't exist`);
    await volume.until(() => !missing());
  }
  for (;;) {
    await volume.report({ phase, progress: 'N/A', running: POD_RUNNING });
    await volume.step();
    await volume.until(() => missing() || (isReady(source) && !hangs(volume, source)));
    if (!missing()) return;
    await volume.report({ phase, running: notRunning('Error', `source ${source.kind} does not exist`) });
    await volume.until(() => !missing());
  }
}

function isReady(source: CloneSource): boolean {
  const status = field(source.get(), 'status');
  return source.kind === 'snapshot'
    ? field(status, 'readyToUse') === true
    : field(status, 'phase') === 'Bound';
}

function hangs(volume: PopulatedVolume, source: CloneSource): boolean {
  return volume.behaviour.hangs === true || source.get()?.metadata.annotations?.[ANNOTATION] === 'hang';
}
