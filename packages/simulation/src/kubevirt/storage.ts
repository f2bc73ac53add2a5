import type { ApiServer } from '../apiserver/api-server.ts';
import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Change } from '../apiserver/store.ts';
import { find, isOf } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import { Component, patchStep, type Step } from './component.ts';
import { Claim, Snapshot } from './kinds.ts';

/** Model of the CSI provisioner and resizer: binds every claim, and grows its volume when the request grows. */
export function startProvisioner(simulation: Simulation, server: ApiServer): Component {
  const { choices } = simulation;
  return new Component({
    simulation,
    server,
    name: 'provisioner',
    kind: Claim,
    decide: (claim) => {
      const storage = fieldAt(claim, ['spec', 'resources', 'requests', 'storage']);
      const isBound = fieldAt(claim, ['status', 'phase']) === 'Bound';
      if (claim.metadata.deletionTimestamp !== undefined) return undefined;
      if (isBound && fieldAt(claim, ['status', 'capacity', 'storage']) === storage) return undefined;
      const patch = { status: { phase: 'Bound', capacity: { storage } } };
      const afterMs = choices.delay(200, 6_000);
      return patchStep(Claim, claim, patch, { what: 'binds', afterMs, subresource: 'status' });
    },
  });
}

/** Behaviour of a snapshot: it becomes ready, reports an error, or does neither until the behaviour changes. */
export type SnapshotBehaviour = 'ok' | 'error' | 'never';

export interface SnapshotterOptions {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  readonly behaviourOf: (snapshot: StoredObject) => SnapshotBehaviour;
}

/** Model of the snapshot controller. A snapshot waits until its claim exists. */
export function startSnapshotter({ simulation, server, behaviourOf }: SnapshotterOptions): Component {
  const decide = (snapshot: StoredObject): Step | undefined => {
    const { metadata } = snapshot;
    const isOver =
      fieldAt(snapshot, ['status', 'readyToUse']) === true ||
      fieldAt(snapshot, ['status', 'error']) !== undefined;
    if (isOver || metadata.deletionTimestamp !== undefined) return undefined;
    const claim = find(server, Claim, metadata.namespace, sourceOf(snapshot));
    const behaviour = behaviourOf(snapshot);
    if (behaviour === 'never' || claim === undefined) return undefined;
    const restoreSize = fieldAt(claim, ['status', 'capacity', 'storage']);
    const status =
      behaviour === 'ok'
        ? { readyToUse: true, restoreSize }
        : { readyToUse: false, error: { message: 'Failed to take the snapshot: the array is full' } };
    const afterMs = simulation.choices.delay(300, 8_000);
    return patchStep(Snapshot, snapshot, { status }, { what: 'handles', afterMs, subresource: 'status' });
  };
  return new Component({
    simulation,
    server,
    name: 'snapshotter',
    kind: Snapshot,
    decide,
    related: (change) => snapshotsOf(server, change),
  });
}

function* snapshotsOf(server: ApiServer, { resource, before, after }: Change): Generator<StoredObject> {
  if (!isOf(resource, Claim)) return;
  const { name, namespace } = (after ?? before)?.object.metadata ?? {};
  for (const snapshot of server.objects(Snapshot))
    if (snapshot.metadata.namespace === namespace && sourceOf(snapshot) === name) yield snapshot;
}

function sourceOf({ spec }: StoredObject): string {
  return String(fieldAt(spec, ['source', 'persistentVolumeClaimName']));
}
