import { Client } from '@vmwright/runtime';
import { accessTo } from '../apiserver/simulated.ts';
import type { SimulatedProcess } from '../world/process.ts';
import type { Simulation } from '../world/simulation.ts';
import { SimulatedVm, VAPP_LABEL } from './virtual-machine.ts';

export interface VmRef {
  readonly namespace: string;
  readonly name: string;
}

/** Finalizer of KubeVirt's controller. */
const FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';

/** A run strategy, and the values of printableStatus that the VM then reports one after another. */
interface Episode {
  readonly strategy?: string;
  readonly statuses: readonly string[];
}

/**
 * Possible state sequences: `BIRTHS` for a new VM, and `CHANGES` for an existing VM that is changed. With the strategy
 * `Always`, the state `Stopped` is transient.
 */
const BIRTHS: readonly [Episode, ...Episode[]] = [
  { strategy: 'Always', statuses: ['Starting', 'Running'] },
  { strategy: 'Always', statuses: ['Stopped', 'Starting', 'Running'] },
  { strategy: 'Always', statuses: ['Stopped', 'Provisioning', 'Starting', 'Running'] },
  { strategy: 'Always', statuses: ['WaitingForVolumeBinding', 'Starting', 'Running'] },
  { strategy: 'Halted', statuses: ['Stopped'] },
  { strategy: 'Halted', statuses: [] },
  { strategy: 'Always', statuses: [] },
];
const CHANGES: readonly [Episode, ...Episode[]] = [
  { strategy: 'Always', statuses: ['Starting', 'Running'] },
  { strategy: 'Halted', statuses: ['Stopping', 'Stopped'] },
  { strategy: 'Always', statuses: ['Stopping', 'Stopped', 'Starting', 'Running'] },
  { statuses: ['Paused'] },
  { statuses: ['Paused', 'Running'] },
  { statuses: ['Migrating', 'Running'] },
  { statuses: ['CrashLoopBackOff', 'Starting', 'Running'] },
  { statuses: ['ErrorUnschedulable'] },
  { statuses: ['Hibernating'] }, // a state for which the mirror has no status
  { strategy: 'Always', statuses: ['Stopped'] }, // the VM fails to start
];

export const KUBEVIRT_ACTIONS = [
  'a VM was deleted',
  'a VM was deleted without its finalizer',
  'a VM was re-created under the same name',
  'a VM reported Stopped for a moment',
] as const;

/** Creates, changes and deletes VMs as KubeVirt and its users do. Requests can be lost, late and out of order. */
export class KubeVirt {
  readonly #simulation: Simulation;
  readonly #client: Client;
  readonly #process: SimulatedProcess;
  readonly #created = new Set<string>();
  #open = 0;

  constructor(simulation: Simulation) {
    const world = simulation.start('kubevirt');
    this.#simulation = simulation;
    this.#client = new Client({ world, access: accessTo(), fieldManager: 'kubevirt' });
    this.#process = world.process;
  }

  /** Whether no action is planned and none waits for its response. */
  get isIdle(): boolean {
    return this.#open === 0;
  }

  at(ms: number, act: () => void): void {
    this.#open += 1;
    const once = () => {
      this.#open -= 1;
      act();
    };
    this.#simulation.schedule.after(ms, once, this.#process);
  }

  /**
   * Creates a VM that then goes through a random sequence of states.
   * @param vapp UUID in the VM's vApp label; undefined without the label
   */
  create(ref: VmRef, vapp: string | undefined): void {
    const { choices, counts } = this.#simulation;
    const { strategy = '', statuses } = choices.one(BIRTHS);
    const key = `${ref.namespace}/${ref.name}`;
    if (this.#created.has(key)) counts.add('a VM was re-created under the same name');
    this.#created.add(key);
    const labels = vapp === undefined ? {} : { labels: { [VAPP_LABEL]: vapp } };
    this.#run(`creates ${key} with ${vapp ?? 'no vApp'}`, () =>
      this.#client.create(SimulatedVm, {
        metadata: { ...ref, ...labels, finalizers: [FINALIZER] },
        spec: { runStrategy: strategy },
      }),
    );
    this.#report(ref, { strategy, statuses });
  }

  /** Takes a VM through a random sequence of states. */
  change(ref: VmRef): void {
    this.play(ref, this.#simulation.choices.one(CHANGES));
  }

  play(ref: VmRef, episode: Episode): void {
    const { strategy } = episode;
    if (strategy !== undefined)
      this.#run(`sets ${ref.name} to ${strategy}`, () =>
        this.#client.mergePatch(SimulatedVm, ref, { spec: { runStrategy: strategy } }),
      );
    this.#report(ref, episode);
  }

  /** Deletes a VM. With `force`, removes its finalizer first, so that the VM is gone immediately. */
  delete(ref: VmRef, force: boolean): void {
    const { counts, choices } = this.#simulation;
    counts.add(force ? 'a VM was deleted without its finalizer' : 'a VM was deleted');
    const release = () => this.#client.mergePatch(SimulatedVm, ref, { metadata: { finalizers: null } });
    this.#run(`${force ? 'force-deletes' : 'deletes'} ${ref.name}`, async () => {
      if (force) await release();
      await this.#client.delete(SimulatedVm, ref);
    });
    if (!force) this.at(100 + choices.pick(6_000), () => this.#run(`finalizes ${ref.name}`, release));
  }

  #report(ref: VmRef, { strategy, statuses }: Episode): void {
    const { choices, counts } = this.#simulation;
    let at = 0;
    for (const [index, printableStatus] of statuses.entries()) {
      at += choices.oneIn(4) ? 500 + choices.pick(6_000) : 20 + choices.pick(900);
      if (strategy === 'Always' && printableStatus === 'Stopped' && index < statuses.length - 1)
        counts.add('a VM reported Stopped for a moment');
      this.at(at, () =>
        this.#run(`reports ${printableStatus} of ${ref.name}`, () =>
          this.#client.mergePatch(
            SimulatedVm,
            ref,
            { status: { printableStatus } },
            { subresource: 'status' },
          ),
        ),
      );
    }
  }

  #run(what: string, action: () => Promise<unknown>): void {
    this.#simulation.note('kubevirt', what);
    this.#open += 1;
    void action()
      .catch(() => undefined)
      .then(() => {
        this.#open -= 1;
      });
  }
}
