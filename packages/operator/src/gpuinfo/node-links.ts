import type { Warning } from './candidate.ts';
import type { NodeResult } from './candidate-of.ts';
import { Multimap } from './multimap.ts';

type Linked = Pick<NodeResult, 'machineId' | 'hostId' | 'isProvisional'>;

/** Nodes by the vSphere objects that they run on. */
export class NodeLinks {
  readonly #byHost = new Multimap<string, string>();
  readonly #byMachine = new Multimap<string, string>();
  readonly #provisional = new Set<string>();
  readonly #sharedMachines = new Set<string>();

  add(node: string, { machineId, hostId, isProvisional }: Linked): void {
    if (hostId !== undefined) this.#byHost.add(hostId, node);
    if (machineId !== undefined) {
      this.#byMachine.add(machineId, node);
      this.#updateShared(machineId);
    }
    if (isProvisional) this.#provisional.add(node);
  }

  /** @param linked links with which the node was added; undefined if it was not added */
  delete(node: string, linked: Linked | undefined): void {
    const { machineId, hostId } = linked ?? {};
    if (hostId !== undefined) this.#byHost.delete(hostId, node);
    if (machineId !== undefined) {
      this.#byMachine.delete(machineId, node);
      this.#updateShared(machineId);
    }
    this.#provisional.delete(node);
  }

  onHost(id: string): ReadonlySet<string> {
    return this.#byHost.get(id);
  }

  ofMachine(id: string): ReadonlySet<string> {
    return this.#byMachine.get(id);
  }

  /** Nodes whose VM may change when another VM appears in vCenter. */
  get provisional(): ReadonlySet<string> {
    return this.#provisional;
  }

  /** Warnings about machines that several nodes run on, in a fixed order. */
  get warnings(): readonly Warning[] {
    return [...this.#sharedMachines].toSorted().map((machine) => {
      const nodes = [...this.#byMachine.get(machine)].toSorted();
      const message = `the nodes ${nodes.join(', ')} have the same VM, ${machine}; delete the Nodes that are no longer in use`;
      return { message, nodes };
    });
  }

  #updateShared(machineId: string): void {
    if (this.#byMachine.get(machineId).size > 1) this.#sharedMachines.add(machineId);
    else this.#sharedMachines.delete(machineId);
  }
}
