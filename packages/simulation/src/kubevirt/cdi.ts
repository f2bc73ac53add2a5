import type { ApiServer } from '../apiserver/api-server.ts';
import { fieldAt, isJson } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Change } from '../apiserver/store.ts';
import { controllerOf, find, isOf } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import { Component, patchStep, refOf, type Step } from './component.ts';
import { Claim, Snapshot, Volume } from './kinds.ts';

/**
 * Behaviour of an import:
 * - `ok`: it succeeds
 * - `slow`: it succeeds, but takes longer
 * - `hang`: it makes no progress until the behaviour changes
 * - `fail`: it ends as Failed
 * - `restart`: the importer restarts once before it succeeds
 * - `restarts`: the importer restarts several times before it succeeds
 * - `missing`: the importer restarts forever, because the source answers 404
 * - `forbidden`: the importer restarts forever, because the source answers 403
 */
export type ImportBehaviour =
  | 'ok'
  | 'slow'
  | 'hang'
  | 'fail'
  | 'restart'
  | 'restarts'
  | 'missing'
  | 'forbidden';

export interface CdiOptions {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  /**
   * Returns the behaviour of the import or clone of a DataVolume. Called before each step, so the behaviour can change.
   */
  readonly behaviourOf: (volume: StoredObject) => ImportBehaviour;
}

const PROGRESS: readonly string[] = ['0.0%', '25.4%', '61.0%', '92.7%'];
const CLONING = 'SnapshotForSmartCloneInProgress';
/** Progress at which imports with the behaviour `fail`, `restart` or `restarts` fail or restart. */
const FAILURE_AT = '61.0%';
const MANY_RESTARTS = 6;
const SLOW_MS = 6_000;
const MESSAGES: Readonly<Partial<Record<ImportBehaviour, string>>> = {
  missing: 'Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found',
  forbidden:
    'Unable to connect to http data source: expected status code 200, got 403. Status: 403 Forbidden',
  restart: 'Unable to process data: unexpected EOF',
  restarts: 'Unable to process data: unexpected EOF',
};

/**
 * Model of CDI's controller and importer: creates the claim of a DataVolume, waits until the claim is bound, and
 * reports the phases of an import or of a clone from a snapshot. Phases, progress and messages are the same as those of
 * the stand-in for CDI in the testbed.
 */
export function startCdi(options: CdiOptions): Component {
  const { simulation, server } = options;
  return new Component({
    simulation,
    server,
    name: 'cdi',
    kind: Volume,
    decide: (volume) => decide(volume, options),
    related: (change) => relatedVolumes(server, change),
  });
}

function* relatedVolumes(server: ApiServer, { resource, before, after }: Change): Generator<StoredObject> {
  const object = (after ?? before)?.object;
  if (object === undefined) return;
  const { name, namespace } = object.metadata;
  if (isOf(resource, Claim)) {
    const volume = find(server, Volume, namespace, name);
    if (volume !== undefined) yield volume;
  } else if (isOf(resource, Snapshot))
    for (const volume of server.objects(Volume)) {
      const source = snapshotSourceOf(volume);
      if (source?.name === name && source.namespace === namespace) yield volume;
    }
}

function decide(volume: StoredObject, { simulation, server, behaviourOf }: CdiOptions): Step | undefined {
  const { choices } = simulation;
  const phase = phaseOf(volume);
  if (volume.metadata.deletionTimestamp !== undefined || isOver(phase)) return undefined;
  const { namespace, name, uid } = volume.metadata;
  const claim = find(server, Claim, namespace, name);
  const usual = () => choices.delay(200, 6_000);
  if (claim === undefined) return createClaim(volume, choices.delay());
  if (controllerOf(claim) !== uid) return undefined; // the claim belongs to a deleted DataVolume, or is foreign
  if (phase === undefined) return report(volume, 'Pending', choices.delay());
  if (fieldAt(claim, ['status', 'phase']) !== 'Bound') return undefined;
  const behaviour = behaviourOf(volume);
  const stepMs = () => (behaviour === 'slow' ? SLOW_MS + usual() : usual());
  if (behaviour === 'hang') return undefined;
  const source = snapshotSourceOf(volume);
  if (source !== undefined) {
    if (phase !== CLONING) return report(volume, CLONING, usual());
    const snapshot = find(server, Snapshot, source.namespace, source.name);
    if (snapshot === undefined || behaviour === 'fail')
      return report(volume, 'Failed', usual(), { message: 'The source snapshot could not be cloned' });
    return fieldAt(snapshot, ['status', 'readyToUse']) === true
      ? report(volume, 'Succeeded', stepMs(), { progress: '100.0%' })
      : undefined;
  }
  if (fieldAt(volume, ['spec', 'source', 'blank']) !== undefined)
    return report(volume, 'Succeeded', usual(), { progress: '100.0%' });
  return importStep(volume, behaviour, stepMs());
}

function importStep(volume: StoredObject, behaviour: ImportBehaviour, afterMs: number): Step {
  const phase = phaseOf(volume);
  if (phase === 'Pending') return report(volume, 'ImportScheduled', afterMs);
  if (phase === 'ImportScheduled') return report(volume, 'ImportInProgress', afterMs, { progress: '0.0%' });
  const progress = String(fieldAt(volume, ['status', 'progress']));
  const restarts = restartsOf(volume);
  const message = MESSAGES[behaviour];
  const restarted = () =>
    report(volume, 'ImportInProgress', afterMs, {
      progress,
      restartCount: restarts + 1,
      ...(message !== undefined && { message }),
    });
  if (behaviour === 'missing' || behaviour === 'forbidden') return restarted();
  if (progress === FAILURE_AT) {
    if (behaviour === 'fail') return report(volume, 'Failed', afterMs, { progress });
    if (behaviour === 'restart' && restarts < 1) return restarted();
    if (behaviour === 'restarts' && restarts < MANY_RESTARTS) return restarted();
  }
  const next = PROGRESS[PROGRESS.indexOf(progress) + 1];
  return next === undefined
    ? report(volume, 'Succeeded', afterMs, { progress: '100.0%' })
    : report(volume, 'ImportInProgress', afterMs, { progress: next });
}

interface Details {
  readonly progress?: string;
  readonly restartCount?: number;
  /** Reason for which the importer is not running. */
  readonly message?: string;
}

function report(volume: StoredObject, phase: string, afterMs: number, details: Details = {}): Step {
  const { message, ...status } = details;
  const conditions = [
    { type: 'Bound', status: phase === 'Pending' ? 'False' : 'True' },
    { type: 'Ready', status: phase === 'Succeeded' ? 'True' : 'False' },
    {
      type: 'Running',
      status: phase === 'ImportInProgress' && message === undefined ? 'True' : 'False',
      ...(message !== undefined && { reason: 'Error', message }),
    },
  ];
  const patch = { status: { phase, claimName: volume.metadata.name, ...status, conditions } };
  return patchStep(Volume, volume, patch, { what: `reports ${phase} of`, afterMs, subresource: 'status' });
}

function createClaim({ metadata, spec }: StoredObject, afterMs: number): Step {
  const { name, uid = '' } = metadata;
  const storage = fieldAt(spec, ['storage']) ?? fieldAt(spec, ['pvc']);
  const owner = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name, uid };
  return {
    what: 'creates the claim of',
    afterMs,
    act: (client) =>
      client.create(Claim, {
        metadata: {
          ...refOf(metadata),
          labels: { app: 'containerized-data-importer' },
          ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
        },
        spec: { accessModes: ['ReadWriteOnce'], ...(isJson(storage) && storage) },
      }),
  };
}

/** Returns the snapshot that a DataVolume clones; undefined if it does not clone one. */
export function snapshotSourceOf({
  spec,
}: StoredObject): { readonly namespace: string; readonly name: string } | undefined {
  const source = fieldAt(spec, ['source', 'snapshot']);
  const [namespace, name] = [fieldAt(source, ['namespace']), fieldAt(source, ['name'])];
  return typeof namespace === 'string' && typeof name === 'string' ? { namespace, name } : undefined;
}

export function phaseOf({ status }: StoredObject): string | undefined {
  const phase = fieldAt(status, ['phase']);
  return typeof phase === 'string' ? phase : undefined;
}

export function restartsOf({ status }: StoredObject): number {
  const restarts = fieldAt(status, ['restartCount']);
  return typeof restarts === 'number' ? restarts : 0;
}

function isOver(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}
