import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Cloud } from '../cloud/cloud.ts';
import type { CloudServer } from '../cloud/server.ts';
import { isLabelledFor, ownerIn, serversOf } from './external-resources.ts';
import {
  conditionsOf,
  isCloudAvailable,
  isPaused,
  mayRecreate,
  msgOf,
  opStatusOf,
  vmIdOf,
  vmnameOf,
} from './objects.ts';

/** Returns why a VM has not converged; undefined if it has. */
export function problemOf(object: StoredObject, cloud: Cloud): string | undefined {
  if (isPaused(object)) return undefined;
  // Accepts the server in the status if it is the VM's own, even if a third party removed its labels. Ignores a server
  // that a third party put into the status.
  const pointed = cloud.servers.get(vmIdOf(object) ?? '');
  const known = pointed !== undefined && isItsOwn(object, pointed) ? pointed : undefined;
  const [machine = known, ...more] = serversOf(cloud, object.metadata.uid ?? '');
  if (more.length > 0) return `it has ${more.length + 1} machines`;
  const problem = machine === undefined ? withoutMachine(object, cloud) : withMachine(object, machine, cloud);
  return problem && `${problem}, but its status is ${JSON.stringify(object.status)}`;
}

function withMachine(object: StoredObject, machine: CloudServer, cloud: Cloud): string | undefined {
  if (vmIdOf(object) !== machine.id) return `its vmId must be ${machine.id}`;
  const { cpuUtilization, state } = cloud.representation(machine);
  const ready = conditionsOf(object).get('Ready');
  if (conditionsOf(object).has('VmLost')) return 'its machine exists';
  if (!isCloudAvailable(object)) return 'the cloud answers';
  switch (state) {
    case 'running': {
      const isReported = opStatusOf(object) === 'Running' && ready?.status === 'True';
      if (!isReported) return 'its machine runs';
      return fieldAt(object.status, ['cpuUtilization']) === cpuUtilization
        ? undefined
        : `its machine uses ${cpuUtilization} %`;
    }
    case 'failed':
      if (mayRecreate(object)) {
        if (isLabelledFor(machine.labels, object.metadata.uid))
          return 'its machine has failed and must be re-created';
        if (!msgOf(object)?.includes('The operator does not remove it'))
          return 'its machine has failed and cannot be replaced';
      }
      return opStatusOf(object) === 'Failed' && ready?.reason === 'MachineFailed'
        ? undefined
        : 'its machine has failed';
    default:
      return `its machine is ${state}`;
  }
}

function withoutMachine(object: StoredObject, cloud: Cloud): string | undefined {
  const conditions = conditionsOf(object);
  const vmId = vmIdOf(object);
  if (vmId !== undefined) {
    if (mayRecreate(object)) return 'its machine is gone and must be re-created';
    const isReported = opStatusOf(object) === 'Unknown' && conditions.get('VmLost')?.status === 'True';
    return isReported ? undefined : 'its machine is gone';
  }
  const rejection = cloud.nameProblem(vmnameOf(object));
  if (rejection === undefined) return 'it has no machine';
  const why = rejection.status === 403 ? 'Prohibited' : 'Taken';
  const isReported =
    opStatusOf(object) === 'Failed' &&
    conditions.get('NameAccepted')?.reason === why &&
    msgOf(object) === (why === 'Taken' ? takenMessage(vmnameOf(object), cloud) : rejection.message);
  return isReported ? undefined : `its name is ${why.toLowerCase()}`;
}

/** Whether the server belongs to the VM. A server without an ownership label is recognized by its name. */
function isItsOwn(object: StoredObject, { labels, name }: CloudServer): boolean {
  return (
    isLabelledFor(labels, object.metadata.uid) ||
    (isLabelledFor(labels, undefined) && name === vmnameOf(object))
  );
}

/**
 * Returns the expected status message for a taken name. If the server that has the name belongs to a VM, the message
 * names that VM, because users know VMs and not servers. All VMs of the scenario are in one namespace.
 */
function takenMessage(vmname: string, cloud: Cloud): string {
  const labels = cloud.servers.named(vmname)?.labels ?? {};
  const by =
    ownerIn(labels) === undefined
      ? 'a server that this operator does not manage. Choose another vmname, or ask an administrator of the cloud'
      : `the VM "${labels['vmwright.dev/name']}" in this namespace. Choose another vmname, or delete that VM`;
  return `The name "${vmname}" is already used by ${by}`;
}
