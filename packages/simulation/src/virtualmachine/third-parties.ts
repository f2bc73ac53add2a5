import { VirtualMachine } from '@vmwright/operator';
import { Client, type Draft, type Kind } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { accessTo } from '../apiserver/simulated.ts';
import { refOf } from '../kubevirt/component.ts';
import {
  Claim,
  Instance,
  Machine,
  Network,
  Secret,
  Snapshot,
  SnapshotClass,
  StorageClass,
  Volume,
} from '../kubevirt/kinds.ts';
import type { OpenObject } from '../scenario/open-kind.ts';
import { atRandomTimes } from '../scenario/random-times.ts';
import { conditionOf, textAt } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import type { Foreign } from './foreign.ts';

const CHILDREN = [Machine, Instance, Volume, Claim, Snapshot, Secret] as const;
type Child = (typeof CHILDREN)[number];

/** Counted actions of third parties. */
export const THIRD_PARTY_ACTIONS = [
  ...CHILDREN.map(deletionOf),
  'a child was changed by hand',
  'a foreign DataVolume cloned a snapshot',
  'a foreign DataVolume was deleted',
  'a name was taken by a foreign object',
] as const;

/** Maximum number of actions per run. */
const MAX_ACTIONS = 10;
const FOREIGN_NAME_ONE_IN = 5;

function deletionOf({ kind, group }: Kind): string {
  return `a ${group === 'kubevirt.io' ? 'KubeVirt ' : ''}${kind} was deleted by hand`;
}

/** Administrators and other tools that create, change and delete objects of KubeVirt and CDI without the operator. */
export class ThirdParties {
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #foreign: Foreign;
  readonly #client: Client;

  constructor(simulation: Simulation, server: ApiServer, foreign: Foreign) {
    this.#simulation = simulation;
    this.#server = server;
    this.#foreign = foreign;
    const world = simulation.start('third party');
    this.#client = new Client({ world, access: accessTo(), fieldManager: 'kubectl' });
  }

  /** Creates the foreign objects that existed before the operator. */
  setUp(): void {
    const { choices, counts } = this.#simulation;
    const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    const fast = { metadata: { name: 'fast', annotations: isDefault }, allowVolumeExpansion: true };
    this.#create(StorageClass, { ...fast, provisioner: 'csi.example', volumeBindingMode: 'Immediate' });
    this.#create(SnapshotClass, { metadata: { name: 'fast' } });
    this.#create(Network, { metadata: { namespace: 'red', name: 'lan' } });
    if (!choices.oneIn(FOREIGN_NAME_ONE_IN)) return;
    counts.add('a name was taken by a foreign object');
    const metadata = { namespace: 'red', name: 'bee' };
    if (choices.oneIn(2))
      this.#create(Machine, { metadata, spec: { runStrategy: 'Halted', template: { spec: {} } } });
    else this.#create(Secret, { metadata: { ...metadata, name: 'bee-cloudinit' } });
  }

  plan(ms: number): void {
    atRandomTimes(this.#simulation, MAX_ACTIONS, ms, () => this.#act());
  }

  #act(): void {
    const { choices } = this.#simulation;
    choices.one([
      () => this.deleteChild(choices.one(CHILDREN)),
      () => this.deleteChild(choices.one(CHILDREN)),
      () => this.#changeChild(),
      () => this.cloneSnapshot(),
      () => this.#deleteClone(),
    ])();
  }

  /** Deletes one of the operator's objects of a kind. */
  deleteChild(kind: Child): void {
    const child = this.#oneOf(kind, (object) => this.#foreign.isOurs(object) && !this.#isProtected(object));
    if (child === undefined) return;
    const { metadata } = child;
    this.#simulation.counts.add(deletionOf(kind));
    this.#run(`deletes ${kind.kind} ${metadata.name}`, () =>
      this.#client.delete(kind, refOf(metadata), { uid: metadata.uid }),
    );
  }

  /** Whether a running machine uses a claim, so that Kubernetes would not delete the claim. */
  #isProtected({ kind, metadata }: StoredObject): boolean {
    return (
      kind === Claim.kind &&
      this.#server
        .objects(Instance)
        .some(
          (each) =>
            each.metadata.namespace === metadata.namespace &&
            JSON.stringify(each.spec).includes(metadata.name),
        )
    );
  }

  /**
   * Deletes the root disks that a machine's status asks the user to delete, because the clone failed or the claim is
   * gone.
   */
  deleteBrokenDisks(): void {
    for (const machine of this.#server.objects(VirtualMachine)) {
      const { namespace = '' } = machine.metadata;
      const name = textAt(machine, 'status', 'dataVolume');
      const { reason = '' } = conditionOf(machine, 'VolumeReady') ?? {};
      if (name !== undefined && ['CloneFailed', 'ClaimNotFound'].includes(reason))
        this.#run(`deletes DataVolume ${name}`, () => this.#client.delete(Volume, { namespace, name }));
    }
  }

  #changeChild(): void {
    const { choices, counts } = this.#simulation;
    const [kind, patch] = choices.one<readonly [Child, object]>([
      [Machine, { spec: { runStrategy: 'Manual' } }],
      [Machine, { spec: { template: { spec: { domain: { cpu: { cores: 7 } } } } } }],
      [Secret, { data: { userdata: 'Y2hhbmdlZA==' } }],
    ]);
    const child = this.#oneOf(kind, (object) => this.#foreign.isOurs(object));
    if (child === undefined) return;
    counts.add('a child was changed by hand');
    this.#run(`changes ${kind.kind} ${child.metadata.name}`, () =>
      this.#client.mergePatch(kind, refOf(child.metadata), patch),
    );
  }

  /** Creates a DataVolume that clones a snapshot of an image, as a user of CDI does. */
  cloneSnapshot(): void {
    const { counts } = this.#simulation;
    const snapshot = this.#oneOf(Snapshot, () => true);
    if (snapshot === undefined) return;
    counts.add('a foreign DataVolume cloned a snapshot');
    const metadata = {
      namespace: 'green',
      name: `clone-${counts.of('a foreign DataVolume cloned a snapshot')}`,
    };
    const storage = { resources: { requests: { storage: '10Gi' } } };
    this.#create(Volume, { metadata, spec: { source: { snapshot: refOf(snapshot.metadata) }, storage } });
  }

  #deleteClone(): void {
    const clone = this.#oneOf(Volume, ({ metadata }) => metadata.namespace === 'green');
    if (clone === undefined) return;
    this.#simulation.counts.add('a foreign DataVolume was deleted');
    this.#run(`deletes ${clone.metadata.name}`, () => this.#client.delete(Volume, refOf(clone.metadata)));
  }

  #oneOf(kind: Child, matches: (object: StoredObject) => boolean): StoredObject | undefined {
    const found = this.#server.objects(kind).filter(matches).toArray();
    return found[this.#simulation.choices.pick(Math.max(found.length, 1))];
  }

  #create(kind: Kind<OpenObject>, object: Draft<OpenObject> & Readonly<Record<string, unknown>>): void {
    const name = textAt(object, 'metadata', 'name');
    this.#run(`creates ${kind.kind} ${name}`, () => this.#client.create(kind, object));
  }

  #run(what: string, action: () => Promise<unknown>): void {
    this.#simulation.note('third party', what);
    void action().catch(() => undefined);
  }
}
