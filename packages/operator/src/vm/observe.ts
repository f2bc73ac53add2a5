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
import { hasVmId, type VM } from './resource.ts';

/** State that a reconcile has observed so far. */
export interface Observed {
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  /**
   * The server that `status.vmId` names, or that was found or created for the VM. `Gone` if the cloud no longer has
   * this server. Undefined if this reconcile has not read, found or created it yet.
   */
  readonly server?: Server | Gone;
  /**
   * Another server with the VM's UID label. It is searched for only if `status.vmId` does not name a server of the VM.
   * `none` if the search found no such server; undefined before the search.
   */
  readonly owned?: Server | 'none';
  /** Whether the cloud accepts the name. */
  readonly name?: 'accepted' | NameRejection;
  /** Whether this reconcile has repaired the labels of the server. */
  readonly isRelabelled?: boolean;
  /** Whether this reconcile has deleted the server. */
  readonly isDeleted?: boolean;
}

/** The cloud has no such server any more. */
export interface Gone {
  /** Id of the server, if it is known. */
  readonly gone: string | undefined;
}

/** Why the cloud rejects a name. */
export interface NameRejection {
  readonly reason: 'Prohibited' | 'Taken';
  readonly message: string;
}

/**
 * Sends a request that depends on the VM's name (a check or a create), and returns its result. If the name is taken,
 * the VM's own server may use it: the response to an earlier create request may have been lost, or the id of the server
 * was not stored.
 */
export async function observeAnswer(
  cloud: CloudClient,
  cluster: string,
  vm: VM,
  send: () => Promise<Server | void>,
): Promise<Observed> {
  try {
    const server = await send();
    return server === undefined ? { cluster, name: 'accepted' } : { cluster, server };
  } catch (error) {
    if (error instanceof GoneError) return { cluster, server: { gone: error.serverId } };
    if (error instanceof ProhibitedNameError) {
      // The cloud may have prohibited the name after it created the VM's server. The status may lack the id of that
      // server. So the server is searched for by its label.
      const [server] = await serversOf(cloud, vm);
      return server === undefined ? { cluster, name: prohibited(error) } : { cluster, server };
    }
    if (!(error instanceof NameTakenError)) throw error;
    const server = await ignoreNotFound(cloud.get(error.serverId));
    if (server === undefined) throw error; // the server that had the name is gone by now, so a retry can succeed
    return isOwnedBy(vm, server) ? { cluster, server } : { cluster, name: taken(cluster, vm, server) };
  }
}

/**
 * Returns all servers with the VM's UID label, including servers that the status does not name. The list may be
 * outdated.
 */
async function serversOf(cloud: CloudClient, { metadata }: VM): Promise<readonly Server[]> {
  const { uid = '' } = metadata;
  const servers: Server[] = [];
  for await (const page of cloud.list({ labels: ownerLabels(uid) })) servers.push(...page);
  return servers;
}

/**
 * Returns the servers of a VM that is being deleted.
 * @param all whether all servers are needed. If false, the server that `status.vmId` names is enough while it exists.
 * This saves a list request, and a later reconcile finds the other servers
 */
export async function remainingServers(cloud: CloudClient, vm: VM, all: boolean): Promise<readonly Server[]> {
  const { status = {} } = vm;
  const found = hasVmId(status) ? await ignoreNotFound(cloud.get(status.vmId)) : undefined;
  const known = found !== undefined && isOwnedBy(vm, found) ? [found] : [];
  if (!all && known.length > 0) return known;
  const listed = await serversOf(cloud, vm);
  return [...known, ...listed.filter(({ id }) => id !== status.vmId)];
}

/**
 * Returns a server with the VM's UID label that is not being deleted. Ignores the server `vmId`. The list may be
 * outdated, so each candidate is also read by its id.
 */
export async function findOwned(cloud: CloudClient, vm: VM, vmId: string): Promise<Server | undefined> {
  for (const { id } of await serversOf(cloud, vm)) {
    const server = id === vmId ? undefined : await ignoreNotFound(cloud.get(id));
    if (server !== undefined && server.state !== 'deleting' && isOwnedBy(vm, server)) return server;
  }
  return undefined;
}

function prohibited({ detail }: CloudError): NameRejection {
  return { reason: 'Prohibited', message: detail };
}

/**
 * Returns the rejection of a name that another server uses. The message names the VM that owns the server, because
 * users work with VMs. It does not name a VM in another namespace, because the user may not be allowed to see that VM.
 */
export function taken(cluster: string, { metadata, spec }: VM, server: Server): NameRejection {
  const owner = ownerIn(server, cluster);
  const { namespace = '' } = metadata;
  const by =
    owner === undefined
      ? 'a server that this operator does not manage. Choose another vmname, or ask an administrator of the cloud'
      : owner.namespace === namespace
        ? `the VM "${owner.name}" in this namespace. Choose another vmname, or delete that VM`
        : 'a VM in another namespace. Choose another vmname';
  return { reason: 'Taken', message: `The name "${spec.vmname}" is already used by ${by}` };
}
