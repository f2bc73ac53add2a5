import type { ApiServer } from '../apiserver/api-server.ts';
import { fieldAt, isJson, same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Change } from '../apiserver/store.ts';
import { controllerOf, find, isOf } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import { phaseOf } from './cdi.ts';
import { Component, patchStep, refOf, type Step } from './component.ts';
import { Claim, Instance, Machine, Volume } from './kinds.ts';

const MACHINE_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';
const INSTANCE_FINALIZER = 'foregroundDeleteVirtualMachine';
/** Marks an instance that was created before its claim existed. Such an instance never starts. */
const STUCK = 'simulated/stuck';

export interface VirtControllerOptions {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  /** Whether the next start of this machine fails. */
  readonly startFails: (machine: StoredObject) => boolean;
}

/** The objects on which the next step for a machine depends. */
interface Observed {
  readonly machine: StoredObject;
  readonly instance: StoredObject | undefined;
  /** First DataVolume of the machine. `claim` is its claim. */
  readonly volume: StoredObject | undefined;
  readonly claim: StoredObject | undefined;
}

/**
 * Model of virt-controller and virt-handler. It creates, runs and deletes the instance of a KubeVirt VirtualMachine,
 * and reports `printableStatus`.
 *
 * It imitates what was observed in the real virt-controller:
 * - A new machine first reports Stopped.
 * - An instance that was created before its claim stays in ErrorPvcNotFound until the instance is deleted.
 * - If `runStrategy` is `Always`, a deleted instance is created again.
 * - A machine is removed after its instance.
 * - A change of the template is reported as RestartRequired.
 */
export function startVirtController(options: VirtControllerOptions): Component {
  const { simulation, server } = options;
  return new Component({
    simulation,
    server,
    name: 'virt-controller',
    kind: Machine,
    decide: (machine) => decide(observe(server, machine), options),
    related: (change) => machinesOf(server, change),
  });
}

function* machinesOf(server: ApiServer, { resource, before, after }: Change): Generator<StoredObject> {
  const { name, namespace } = (after ?? before)?.object.metadata ?? {};
  const isVolume = isOf(resource, Volume) || isOf(resource, Claim);
  if (!isVolume && !isOf(resource, Instance)) return;
  for (const machine of server.objects(Machine)) {
    if (machine.metadata.namespace !== namespace) continue;
    if (isVolume ? volumeNameOf(machine) === name : machine.metadata.name === name) yield machine;
  }
}

function observe(server: ApiServer, machine: StoredObject): Observed {
  const { namespace, name, uid } = machine.metadata;
  const instance = find(server, Instance, namespace, name);
  const volume = volumeNameOf(machine);
  return {
    machine,
    instance: instance !== undefined && controllerOf(instance) === uid ? instance : undefined,
    volume: volume === undefined ? undefined : find(server, Volume, namespace, volume),
    claim: volume === undefined ? undefined : find(server, Claim, namespace, volume),
  };
}

function decide(observed: Observed, options: VirtControllerOptions): Step | undefined {
  const { machine, instance } = observed;
  const { choices } = options.simulation;
  const { finalizers = [], deletionTimestamp } = machine.metadata;
  const isDeleted = deletionTimestamp !== undefined;
  if (!isDeleted && !finalizers.includes(MACHINE_FINALIZER))
    return patchStep(
      Machine,
      machine,
      { metadata: { finalizers: [...finalizers, MACHINE_FINALIZER] } },
      { what: 'adds its finalizer to', afterMs: choices.delay() },
    );
  const reported = report(observed, choices.delay());
  if (reported !== undefined) return reported;
  if (instance?.metadata.deletionTimestamp !== undefined)
    return finalize(instance, choices.delay(300, 6_000));
  const shouldRun = fieldAt(machine, ['spec', 'runStrategy']) === 'Always' && !isDeleted;
  if (instance !== undefined && !shouldRun) return deleteInstance(instance, choices.delay());
  if (isDeleted) {
    const rest = finalizers.filter((each) => each !== MACHINE_FINALIZER);
    return patchStep(
      Machine,
      machine,
      { metadata: { finalizers: rest.length === 0 ? null : rest } },
      { what: 'finalizes', afterMs: choices.delay(300, 6_000) },
    );
  }
  if (!shouldRun) return undefined;
  if (instance === undefined) return createInstance(observed, choices.delay());
  return runStep(observed, instance, options);
}

/** Starts the instance as soon as its volume is populated, and deletes the instance if its start has failed. */
function runStep(
  { machine, volume, claim }: Observed,
  instance: StoredObject,
  { simulation: { choices }, startFails }: VirtControllerOptions,
): Step | undefined {
  if (phaseOf(instance) === 'Failed') return deleteInstance(instance, choices.delay(3_000, 12_000));
  const isFilled = volume === undefined || phaseOf(volume) === 'Succeeded';
  if (isRunning(instance) || isStuck(instance) || !isFilled || claim === undefined) return undefined;
  const status = startFails(machine)
    ? { phase: 'Failed' }
    : {
        phase: 'Running',
        nodeName: 'node-1',
        interfaces: [{ name: 'net0', ipAddress: '10.0.0.1' }],
        conditions: [{ type: 'Ready', status: 'True' }],
      };
  return patchStep(
    Instance,
    instance,
    { status },
    { what: `sets ${status.phase} on`, afterMs: choices.delay(300, 6_000) },
  );
}

/** Returns a write of the machine's status; undefined if the status already matches the observed state. */
function report(observed: Observed, afterMs: number): Step | undefined {
  const { machine, instance } = observed;
  const printableStatus = printableStatusOf(observed);
  const template = fieldAt(machine, ['spec', 'template', 'spec']);
  const isChanged = instance !== undefined && !same(fieldAt(instance, ['spec']), template);
  const conditions = [
    { type: 'Ready', status: printableStatus === 'Running' ? 'True' : 'False' },
    ...(isChanged
      ? [{ type: 'RestartRequired', status: 'True', message: 'a non-live-updatable field was changed' }]
      : []),
  ];
  const status = {
    printableStatus,
    ready: printableStatus === 'Running',
    created: instance !== undefined,
    conditions,
  };
  if (same(machine.status, status)) return undefined;
  return patchStep(
    Machine,
    machine,
    { status },
    { what: `reports ${printableStatus} of`, afterMs, subresource: 'status' },
  );
}

function printableStatusOf({ machine, instance, volume, claim }: Observed): string {
  if (machine.metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (instance === undefined) return 'Stopped';
  if (instance.metadata.deletionTimestamp !== undefined) return 'Stopping';
  if (isRunning(instance)) return 'Running';
  if (phaseOf(instance) === 'Failed') return 'CrashLoopBackOff';
  if (isStuck(instance) || claim === undefined) return 'ErrorPvcNotFound';
  if (volume === undefined || phaseOf(volume) === 'Succeeded') return 'Starting';
  return phaseOf(volume) === 'Failed' ? 'DataVolumeError' : 'Provisioning';
}

function createInstance({ machine, claim }: Observed, afterMs: number): Step {
  const { name, uid = '' } = machine.metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid };
  const { labels, annotations } = metadataOf(fieldAt(machine, ['spec', 'template', 'metadata']));
  return {
    what: 'creates the instance of',
    afterMs,
    act: (client) =>
      client.create(Instance, {
        metadata: {
          ...refOf(machine.metadata),
          finalizers: [INSTANCE_FINALIZER],
          ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
          labels,
          annotations: { ...annotations, ...(claim === undefined && { [STUCK]: 'true' }) },
        },
        spec: fieldAt(machine, ['spec', 'template', 'spec']),
        status: { phase: 'Pending' },
      }),
  };
}

/** Returns the labels and annotations of a template, which its instances inherit. */
function metadataOf(template: unknown): Record<'labels' | 'annotations', Readonly<Record<string, string>>> {
  const map = (name: string) => {
    const found = fieldAt(template, [name]);
    const entries = Object.entries(isJson(found) ? found : {});
    return Object.fromEntries(entries.map(([key, value]) => [key, String(value)]));
  };
  return { labels: map('labels'), annotations: map('annotations') };
}

function deleteInstance({ metadata }: StoredObject, afterMs: number): Step {
  const { uid } = metadata;
  return {
    what: 'deletes the instance',
    afterMs,
    act: (client) => client.delete(Instance, refOf(metadata), { uid }),
  };
}

function finalize(instance: StoredObject, afterMs: number): Step {
  const patch = { metadata: { finalizers: null } };
  return patchStep(Instance, instance, patch, { what: 'finalizes the instance', afterMs });
}

/** Returns the name of the first DataVolume of a machine, which is its boot disk here. */
function volumeNameOf(machine: StoredObject): string | undefined {
  const volumes = fieldAt(machine, ['spec', 'template', 'spec', 'volumes']);
  for (const each of Array.isArray(volumes) ? volumes : []) {
    const name = fieldAt(each, ['dataVolume', 'name']);
    if (isJson(each) && typeof name === 'string') return name;
  }
  return undefined;
}

function isRunning(instance: StoredObject): boolean {
  return phaseOf(instance) === 'Running';
}

function isStuck({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[STUCK] === 'true';
}
