import { FACT_KINDS, GPUInfo } from '@vmwright/operator';
import type { Manager } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { ReplicaWorld } from '../scenario/replica-world.ts';
import type { HostView } from './hosts.ts';
import { Node, Pod } from './kinds.ts';
import type { Known, KnownHosts } from './rules.ts';

interface Replica {
  readonly world: ReplicaWorld;
  readonly manager: Manager;
  readonly hosts: HostView;
}

/** The caches and the clock of each replica. */
export class Knowledge {
  readonly #replicas = new Map<string, Replica>();

  add(replica: Replica): void {
    this.#replicas.set(replica.world.identity, replica);
  }

  /** Returns the current content of a replica's caches, and the time on its clock. */
  of(identity: string): (Known & { readonly now: number }) | undefined {
    const replica = this.#replicas.get(identity);
    if (replica === undefined) return undefined;
    const { world, manager, hosts } = replica;
    const [NodeKind, PodKind] = FACT_KINDS;
    return {
      nodes: [...manager.caches.get(NodeKind).list()],
      pods: [...manager.caches.get(PodKind).list()],
      infos: [...manager.caches.get(GPUInfo).list()],
      hosts,
      now: world.now(),
    };
  }
}

/** Returns the true state of the cluster. */
export function truthOf(server: ApiServer, hosts: KnownHosts): Known {
  return {
    nodes: [...server.objects(Node)],
    pods: [...server.objects(Pod)],
    infos: [...server.objects(GPUInfo)],
    hosts,
  };
}
