import {
  type CloudClient,
  type CloudError,
  GoneError,
  NameTakenError,
  ProhibitedNameError,
  type Server,
} from '@vmwright/cloud';
import { ignoreNotFound } from './errors.ts';
import { isOwnedBy, ownerIn, ownerLabels } from './identity.ts';
import type { Seen } from './plan.ts';
import { hasVmId, type VM } from './resource.ts';
import type { Refusal } from './status.ts';

/**
 * What is seen by asking about a name, or for a server: ours, accepted, or refused. That the name is taken says nothing
 * yet: after an answer that got lost, it is taken by the machine that we asked for.
 */
export async function seenBy(
  cloud: CloudClient,
  cluster: string,
  vm: VM,
  ask: () => Promise<Server | void>,
): Promise<Seen> {
  try {
    const server = await ask();
    return server === undefined ? { name: 'accepted' } : { server };
  } catch (error) {
    if (error instanceof GoneError) return { server: { gone: error.serverId } };
    if (error instanceof ProhibitedNameError) {
      // The machine may be older than the prohibition: its id was not stored yet, or someone has removed it.
      const [server] = await serversOf(cloud, vm);
      return server === undefined ? { name: prohibited(error) } : { server };
    }
    if (!(error instanceof NameTakenError)) throw error;
    const server = error.serverId === undefined ? undefined : await ignoreNotFound(cloud.get(error.serverId));
    if (server === undefined) throw error; // the name is free by now: the next try finds it so
    return isOwnedBy(vm, server) ? { server } : { name: taken(cluster, vm, server) };
  }
}

/** All servers with the ownership label of an object, also one whose id was never stored. A list may be old. */
async function serversOf(cloud: CloudClient, { metadata }: VM): Promise<readonly Server[]> {
  const { uid = '' } = metadata;
  const servers: Server[] = [];
  for await (const page of cloud.list({ labels: ownerLabels(uid) })) servers.push(...page);
  return servers;
}

/**
 * The servers of an object that is being deleted.
 * @param whole false: where the server that `status.vmId` names is among them, that one only, which takes one call. The
 * others follow when it is gone
 */
export async function remainingOf(cloud: CloudClient, vm: VM, whole: boolean): Promise<readonly Server[]> {
  const { status = {} } = vm;
  const found = hasVmId(status) ? await ignoreNotFound(cloud.get(status.vmId)) : undefined;
  const known = found !== undefined && isOwnedBy(vm, found) ? [found] : [];
  if (!whole && known.length > 0) return known;
  const listed = await serversOf(cloud, vm);
  return [...known, ...listed.filter(({ id }) => id !== status.vmId)];
}

/**
 * A server with the ownership label of this object other than the one that `status.vmId` names. A list may be old, so
 * the cloud is asked for each candidate.
 */
export async function ownedBesides(cloud: CloudClient, vm: VM, vmId: string): Promise<Server | undefined> {
  for (const { id } of await serversOf(cloud, vm)) {
    const server = id === vmId ? undefined : await ignoreNotFound(cloud.get(id));
    if (server !== undefined && server.state !== 'deleting' && isOwnedBy(vm, server)) return server;
  }
  return undefined;
}

function prohibited({ detail }: CloudError): Refusal {
  return { reason: 'Prohibited', message: detail };
}

/** Users own VMs, not servers: names the VM that holds the name, unless it is in a namespace they may not see. */
export function taken(cluster: string, { metadata, spec }: VM, server: Server): Refusal {
  const holder = ownerIn(server, cluster);
  const { namespace = '' } = metadata;
  const by =
    holder === undefined
      ? 'a server that this operator does not manage. Choose another vmname, or ask an administrator of the cloud'
      : holder.namespace === namespace
        ? `the VM "${holder.name}" in this namespace. Choose another vmname, or delete that VM`
        : 'a VM in another namespace. Choose another vmname';
  return { reason: 'Taken', message: `The name "${spec.vmname}" is already used by ${by}` };
}
