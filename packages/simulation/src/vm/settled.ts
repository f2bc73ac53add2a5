import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Cloud } from '../cloud/cloud.ts';
import type { CloudServer } from '../cloud/server.ts';
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
import { isMarkedFor, ownerIn, serversOf } from './outside.ts';

/** What is wrong with an object at rest; undefined where all is as it should be. */
export function problemOf(object: StoredObject, cloud: Cloud): string | undefined {
  if (isPaused(object)) return undefined;
  // Also one whose marks a stranger has taken off; but not one that a stranger has pointed it at.
  const pointed = cloud.servers.get(vmIdOf(object) ?? '');
  const known = pointed !== undefined && isItsOwn(object, pointed) ? pointed : undefined;
  const [machine = known, ...more] = serversOf(cloud, object.metadata.uid ?? '');
  if (more.length > 0) return `it has ${more.length + 1} machines`;
  const problem = machine === undefined ? withoutMachine(object, cloud) : withMachine(object, machine, cloud);
  return problem && `${problem}, and its status is ${JSON.stringify(object.status)}`;
}

function withMachine(object: StoredObject, machine: CloudServer, cloud: Cloud): string | undefined {
  if (vmIdOf(object) !== machine.id) return `its machine is ${machine.id}`;
  const { cpuUtilization, state } = cloud.shown(machine);
  const ready = conditionsOf(object).get('Ready');
  if (conditionsOf(object).has('VmLost')) return 'its machine is not lost';
  if (!isCloudAvailable(object)) return 'the cloud answers';
  switch (state) {
    case 'running': {
      const isTold = opStatusOf(object) === 'Running' && ready?.status === 'True';
      if (!isTold) return 'its machine runs';
      return fieldAt(object.status, ['cpuUtilization']) === cpuUtilization
        ? undefined
        : `its machine uses ${cpuUtilization} %`;
    }
    case 'failed':
      if (mayRecreate(object)) {
        if (isMarkedFor(machine.labels, object.metadata.uid))
          return 'its machine has failed, and another is wanted';
        if (!msgOf(object)?.includes('The operator does not remove it'))
          return 'its machine has failed, and cannot be removed for another';
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
    if (mayRecreate(object)) return 'its machine is gone, and another is wanted';
    const isTold = opStatusOf(object) === 'Unknown' && conditions.get('VmLost')?.status === 'True';
    return isTold ? undefined : 'its machine is gone';
  }
  const refusal = cloud.refusalOf(vmnameOf(object));
  if (refusal === undefined) return 'it has no machine';
  const why = refusal.status === 403 ? 'Prohibited' : 'Taken';
  const isTold =
    opStatusOf(object) === 'Failed' &&
    conditions.get('NameAccepted')?.reason === why &&
    msgOf(object) === (why === 'Taken' ? takenMessage(vmnameOf(object), cloud) : refusal.message);
  return isTold ? undefined : `its name is ${why.toLowerCase()}`;
}

/** A server that has lost its ownership label is known by its name. */
function isItsOwn(object: StoredObject, { labels, name }: CloudServer): boolean {
  return (
    isMarkedFor(labels, object.metadata.uid) || (isMarkedFor(labels, undefined) && name === vmnameOf(object))
  );
}

/** Users own VMs, not servers. All VMs are in one namespace here. */
function takenMessage(vmname: string, cloud: Cloud): string {
  const labels = cloud.servers.named(vmname)?.labels ?? {};
  const by =
    ownerIn(labels) === undefined
      ? 'a server that this operator does not manage. Choose another vmname, or ask an administrator of the cloud'
      : `the VM "${labels['vmwright.dev/name']}" in this namespace. Choose another vmname, or delete that VM`;
  return `The name "${vmname}" is already used by ${by}`;
}
