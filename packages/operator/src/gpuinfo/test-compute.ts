import type { ComputeChange, ComputeFacts, HostFacts, MachineFacts } from '../vcenter/compute-facts.ts';

/** vCenters whose facts a test sets. */
export class TestCompute implements ComputeFacts {
  staleVcenters: readonly string[] = [];
  readonly hosts = new Map<string, HostFacts>();
  readonly machines = new Map<string, MachineFacts>();
  #listener: ((change: ComputeChange) => void) | undefined;

  host(id: string) {
    return this.hosts.get(id);
  }
  machineByUuid(uuid: string) {
    return [...this.machines.values()].find((each) => each.uuid === uuid);
  }
  machineByName(name: string) {
    return [...this.machines.values()].find((each) => each.name === name);
  }
  subscribe(listener: (change: ComputeChange) => void) {
    this.#listener = listener;
    return () => undefined;
  }
  synced() {
    return Promise.resolve();
  }
  setHost(id: string, fields: Partial<HostFacts> = {}) {
    this.hosts.set(id, {
      id,
      name: id,
      isConnected: true,
      isInMaintenance: false,
      gpus: [],
      maintenance: [],
      warnings: [],
      ...fields,
    });
    this.#report({ hosts: new Set([id]) });
  }
  setMachine(name: string, fields: Partial<MachineFacts> = {}) {
    const id = `v/${name}`;
    const before = this.machines.get(id);
    const machine = {
      id,
      name,
      uuid: `uuid-of-${name}`,
      instanceUuid: name,
      isPoweredOn: true,
      hostId: 'v/host-1',
      gpus: [],
      cpuDemandMhz: 100,
      memoryUsageMb: 1_000,
      ...before,
      ...fields,
    };
    this.machines.set(id, machine);
    const isUsage = before !== undefined && Object.keys(fields).every((key) => /^(cpu|memory)/.test(key));
    this.#report(isUsage ? { usage: new Set([id]) } : { machines: new Set([id]) });
  }
  removeMachine(name: string) {
    this.machines.delete(`v/${name}`);
    this.#report({ machines: new Set([`v/${name}`]) });
  }
  setStale(...names: readonly string[]) {
    this.staleVcenters = names;
    this.#report({ isStalenessChanged: true });
  }
  #report(change: Partial<ComputeChange>) {
    const none = new Set<string>();
    this.#listener?.({ hosts: none, machines: none, usage: none, isStalenessChanged: false, ...change });
  }
}
