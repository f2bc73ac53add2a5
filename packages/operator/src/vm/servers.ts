import {
  type CloudClient,
  type CloudError,
  GoneError,
  NameTakenError,
  ProhibitedNameError,
  type Server,
} from '@vmwright/cloud';
import { conditionOf } from '@vmwright/runtime';
import { isOwnedBy, marksOfOne } from './marks.ts';
import type { Refusal, Seen } from './plan.ts';
import type { VM } from './resource.ts';
import { unlessGone } from './unless-gone.ts';

/**
 * What is seen by asking about a name, or for a server: ours, accepted, or refused. That the name is taken says nothing
 * yet: after an answer that got lost, it is taken by the machine that we asked for.
 */
export async function seenBy(cloud: CloudClient, vm: VM, ask: () => Promise<Server | void>): Promise<Seen> {
  try {
    const server = await ask();
    return server === undefined ? { name: 'accepted' } : { server };
  } catch (error) {
    if (error instanceof GoneError) return { server: { gone: error.serverId } };
    if (error instanceof ProhibitedNameError) {
      // It may have become so after the machine was made, and before we have learned of that.
      const [server] = vm.status?.attempts === undefined ? [] : await serversOf(cloud, vm);
      return server === undefined ? { name: refusal('Prohibited', error) } : { server };
    }
    if (!(error instanceof NameTakenError)) throw error;
    const server = error.serverId === undefined ? undefined : await unlessGone(cloud.get(error.serverId));
    if (server === undefined) throw error; // the name is free by now: the next try finds it so
    return isOwnedBy(vm, server) ? { server } : { name: refusal('Taken', error) };
  }
}

/** All servers that were made for an object, also one whose id we have never learned. */
async function serversOf(cloud: CloudClient, vm: VM): Promise<readonly Server[]> {
  const { metadata, status } = vm;
  const { uid = '' } = metadata;
  const servers = new Map<string, Server>();
  for await (const page of cloud.list({ labels: marksOfOne(uid) }))
    for (const server of page) servers.set(server.id, server);
  const { vmId } = status ?? {};
  // A list may lag behind.
  const known = vmId === undefined || servers.has(vmId) ? undefined : await unlessGone(cloud.get(vmId));
  if (known !== undefined && isOwnedBy(vm, known)) servers.set(known.id, known);
  return [...servers.values()];
}

/** The same once their deletion was asked for: of the one that we know, one call tells that it is still there. */
export async function remainingOf(cloud: CloudClient, vm: VM): Promise<readonly Server[]> {
  const { vmId, conditions } = vm.status ?? {};
  const isAsked = conditionOf(conditions, 'Ready')?.reason === 'Deleting';
  const known = isAsked && vmId !== undefined ? await unlessGone(cloud.get(vmId)) : undefined;
  return known !== undefined && isOwnedBy(vm, known) ? [known] : serversOf(cloud, vm);
}

function refusal(reason: Refusal['reason'], { detail }: CloudError): Refusal {
  return { reason, message: detail };
}
