import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import type { Draft } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { Secret } from '../kubevirt/kinds.ts';
import { KubectlUser, type Ref } from '../scenario/kubectl-user.ts';
import { isTerminating, keyOf, PAUSED, phaseIn, textAt } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';
import { SOURCES } from './backends.ts';
import { RETRY } from './objects.ts';

/** VirtualMachines of the users. Two have the same name in different namespaces. */
const MACHINES: readonly [Ref, ...Ref[]] = [
  { namespace: 'red', name: 'ant' },
  { namespace: 'red', name: 'bee' },
  { namespace: 'blue', name: 'cat' },
  { namespace: 'blue', name: 'ant' },
];
const BASE: Ref = { namespace: 'images', name: 'base' };
/** Images of the machines. Users choose an entry at random, so an image that is listed twice is used more often. */
const IMAGES: readonly [Ref, ...Ref[]] = [
  BASE,
  BASE,
  { namespace: 'red', name: 'base' },
  { namespace: 'images', name: 'tool' },
];
/** Machine that a user creates, together with an image of its own, after the faults have stopped. */
export const FRESH: Ref = { namespace: 'red', name: 'fresh' };
const FRESH_IMAGE: Ref = { namespace: 'images', name: 'fresh' };

export const PASSWORD = 'the-password-of-the-user';
/** Secret that contains the password of a user. */
export const PASSWORDS: Ref = { namespace: 'red', name: 'passwords' };

/** Interfaces that users give to several machines. These machines have the same address; only one may keep it. */
const INTERFACES = [{ network: 'red/lan', ipAddress: '10.10.0.7/24' }];
const PASSWORD_ONE_IN = 8;
const CASCADES = ['foreground', 'orphan'] as const;

export const USER_ACTIONS = [
  'a machine was created without a template',
  'a machine was changed',
  'all machines got the same address',
  'a machine was orphaned',
  'a machine was deleted with --cascade=foreground',
  'a machine was deleted with --cascade=orphan',
  'a deletion was repeated with --cascade=orphan',
  'an image was deleted by a user',
  'an image was orphaned',
  'an image was deleted with --cascade=foreground',
  'an image was deleted with --cascade=orphan',
  'an image was paused',
  'the source of an image was changed',
  'an image was retried by a user',
] as const;

type Template = NonNullable<VirtualMachine['spec']['vmDiskImageTemplate']>;
type UserAction = (typeof USER_ACTIONS)[number];

/** Users who create, change and delete VirtualMachines and images, sometimes within seconds of each other. */
export class User {
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #machines: KubectlUser<VirtualMachine>;
  readonly #images: KubectlUser<VMDiskImage>;
  /** `maxClones` of all templates of a run. It is the same for all, so that two templates of one image agree. */
  readonly #maxClones: number | undefined;

  constructor(simulation: Simulation, server: ApiServer) {
    const { choices } = simulation;
    this.#simulation = simulation;
    this.#server = server;
    this.#machines = new KubectlUser(simulation, VirtualMachine);
    this.#images = new KubectlUser(simulation, VMDiskImage);
    this.#maxClones = choices.oneIn(3) ? 1 + choices.pick(2) : undefined;
  }

  /** Creates the Secret with the password, and schedules the users' actions within the given number of milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    const password = { metadata: PASSWORDS, stringData: { password: PASSWORD } };
    this.#machines.run('creates a password', () => this.#machines.client.create(Secret, password));
    for (const ref of MACHINES) this.#planMachine(ref, ms);
    for (const ref of new Set(IMAGES)) this.#planImage(ref, ms);
    if (choices.oneIn(4)) this.#machines.at(choices.pick(ms), () => this.createImage(choices.one(IMAGES)));
  }

  #planMachine(ref: Ref, ms: number): void {
    const { choices } = this.#simulation;
    const { later, first } = this.#times(ms);
    const at = (act: () => void) => this.#machines.at(later(), act);
    this.#machines.at(first, () => this.create(ref, choices.one(IMAGES)));
    if (choices.oneIn(4)) at(() => this.#change(ref));
    if (choices.oneIn(8)) {
      at(() => this.#machines.annotate(ref, nameOf(ref), PAUSED, 'true'));
      at(() => this.#machines.annotate(ref, nameOf(ref), PAUSED, null));
    }
    if (!choices.oneIn(2)) return;
    at(() => {
      if (choices.oneIn(6)) this.#orphan(ref);
      else if (choices.oneIn(4)) this.#cascade(ref);
      else this.delete(ref);
    });
    if (choices.oneIn(2)) at(() => this.create(ref, choices.one(IMAGES)));
  }

  #planImage(ref: Ref, ms: number): void {
    const { choices } = this.#simulation;
    const { later } = this.#times(ms);
    const at = (act: () => void) => this.#images.at(later(), act);
    if (choices.oneIn(3)) at(() => this.createImage(ref));
    if (choices.oneIn(4)) at(() => this.deleteImage(ref));
    if (choices.oneIn(12)) at(() => this.#orphanImage(ref));
    if (choices.oneIn(8)) at(() => this.#cascadeImage(ref));
    if (choices.oneIn(6)) at(() => this.retry(ref));
    if (choices.oneIn(8)) at(() => this.#changeSource(ref));
    if (choices.oneIn(8)) {
      at(() => this.#pauseImage(ref));
      at(() => this.#images.annotate(ref, nameOf(ref), PAUSED, null));
    }
  }

  #times(ms: number): { readonly first: number; readonly later: () => number } {
    const { choices } = this.#simulation;
    const first = choices.pick(ms / 4);
    let at = first;
    const later = () => {
      at += choices.oneIn(2) ? choices.pick(5_000) : choices.pick(ms / 3);
      return Math.min(at, ms);
    };
    return { first, later };
  }

  create(ref: Ref, image: Ref): void {
    const { choices } = this.#simulation;
    const hasTemplate = !choices.oneIn(4);
    if (!hasTemplate) this.#count('a machine was created without a template');
    const source = choices.oneIn(10) ? SOURCES.missing : SOURCES.flaky;
    const template = hasTemplate ? this.#template(image, source) : undefined;
    this.#createMachine(ref, image, template, {
      ...(choices.oneIn(4) && { ignoreOnDeploy: true }),
      ...(choices.oneIn(4) && { updatePolicy: 'Restart' }),
      ...(choices.oneIn(4) && { interfaces: INTERFACES }),
    });
  }

  #createMachine(
    ref: Ref,
    image: Ref,
    template: Template | undefined,
    more: Partial<VirtualMachine['spec']>,
  ): void {
    const draft: Draft<VirtualMachine> = {
      metadata: ref,
      spec: {
        baseVm: 'demo',
        resources: { cpu: 1, memory: '1Gi', diskSize: '12Gi' },
        users: [{ name: 'demo', ...this.#passwordIn(ref.namespace) }],
        vmDiskImageRef: image,
        ...(template && { vmDiskImageTemplate: template }),
        ...more,
      },
    };
    this.#machines.run(`creates ${nameOf(ref)} from ${nameOf(image)}`, () =>
      this.#machines.client.create(VirtualMachine, draft),
    );
  }

  /**
   * Returns the fields that set the password of a machine's user. Most users get no password, because password
   * hashing takes a tenth of the time of a run.
   */
  #passwordIn(namespace: string): object {
    const { choices } = this.#simulation;
    if (!choices.oneIn(PASSWORD_ONE_IN)) return {};
    return namespace === PASSWORDS.namespace && choices.oneIn(2)
      ? { passwordSecretRef: { name: PASSWORDS.name } }
      : { plain_text_passwd: PASSWORD };
  }

  /** Creates an image, as a user without templates does. */
  createImage(ref: Ref): void {
    const spec = this.#template(ref, SOURCES.flaky);
    this.#images.run(`creates the image ${nameOf(ref)}`, () =>
      this.#images.client.create(VMDiskImage, { metadata: ref, spec }),
    );
  }

  delete(ref: Ref): void {
    this.#machines.delete(ref, nameOf(ref));
  }

  /**
   * Repeats the deletion of all machines and images that are being deleted, now with `--cascade=orphan`, which keeps
   * their remaining children.
   */
  orphanTerminating(): void {
    for (const [kind, user] of [
      [VirtualMachine, this.#machines],
      [VMDiskImage, this.#images],
    ] as const)
      for (const object of this.#server.objects(kind)) {
        if (!isTerminating(object)) continue;
        this.#count('a deletion was repeated with --cascade=orphan');
        user.cascade(refOf(object.metadata), keyOf(object), 'orphan');
      }
  }

  deleteImage(ref: Ref): void {
    this.#count('an image was deleted by a user');
    this.#images.delete(ref, `the image ${nameOf(ref)}`);
  }

  retry(ref: Ref): void {
    this.#count('an image was retried by a user');
    this.#images.annotate(ref, nameOf(ref), RETRY, this.#simulation.uuid());
  }

  /** Creates a machine with a new image. */
  createFresh(): void {
    this.#createMachine(FRESH, FRESH_IMAGE, this.#template(FRESH_IMAGE, SOURCES.sound), {});
  }

  /** Retries the images that failed although their source exists. */
  retryFailed(): void {
    for (const image of this.#server.objects(VMDiskImage))
      if (phaseIn(image) === 'Failed' && !isTerminating(image) && !isMissing(image))
        this.retry(refOf(image.metadata));
  }

  /** Gives all machines the same address, which only one of them may keep. */
  shareAddress(): void {
    this.#count('all machines got the same address');
    for (const { metadata } of this.#server.objects(VirtualMachine))
      this.#machines.run(`changes the address of ${metadata.name}`, () =>
        this.#machines.client.mergePatch(VirtualMachine, refOf(metadata), {
          spec: { interfaces: INTERFACES },
        }),
      );
  }

  /** Removes the paused annotation from all machines and images. */
  resume(): void {
    for (const { metadata } of this.#server.objects(VirtualMachine))
      if (PAUSED in (metadata.annotations ?? {}))
        this.#machines.annotate(refOf(metadata), metadata.name, PAUSED, null);
    for (const { metadata } of this.#server.objects(VMDiskImage))
      if (PAUSED in (metadata.annotations ?? {}))
        this.#images.annotate(refOf(metadata), metadata.name, PAUSED, null);
  }

  #template({ name }: Ref, source: string): Template {
    const { choices } = this.#simulation;
    const retention = choices.one([
      { retention: { pruneAfter: '4s' } },
      { retention: { pruneAfter: '15s' } },
      { retention: { keep: true, pruneAfter: '1s' } },
      {},
    ]);
    return {
      secretRef: '',
      url: `${source}/${name}.img`,
      sourceType: 'http',
      diskSize: '10Gi',
      ...(this.#maxClones !== undefined && { maxClones: this.#maxClones }),
      ...retention,
    };
  }

  #change(ref: Ref): void {
    const { choices } = this.#simulation;
    this.#count('a machine was changed');
    const spec = choices.one<object>([
      { resources: { cpu: 2 } },
      { resources: { diskSize: '20Gi' } },
      { ignoreOnDeploy: true },
      { ignoreOnDeploy: null },
      { interfaces: INTERFACES },
    ]);
    this.#machines.run(`changes ${nameOf(ref)}: ${JSON.stringify(spec)}`, () =>
      this.#machines.client.mergePatch(VirtualMachine, ref, { spec }),
    );
  }

  #changeSource(ref: Ref): void {
    this.#count('the source of an image was changed');
    const url = `${SOURCES.flaky}/${this.#simulation.uuid()}.img`;
    this.#images.run(`changes the source of ${nameOf(ref)}`, () =>
      this.#images.client.mergePatch(VMDiskImage, ref, { spec: { url } }),
    );
  }

  #orphan(ref: Ref): void {
    this.#count('a machine was orphaned');
    this.#machines.orphan(ref, nameOf(ref));
  }

  #orphanImage(ref: Ref): void {
    this.#count('an image was orphaned');
    this.#images.orphan(ref, nameOf(ref));
  }

  #cascade(ref: Ref): void {
    const cascade = this.#simulation.choices.one(CASCADES);
    this.#count(`a machine was deleted with --cascade=${cascade}`);
    this.#machines.cascade(ref, nameOf(ref), cascade);
  }

  #cascadeImage(ref: Ref): void {
    const cascade = this.#simulation.choices.one(CASCADES);
    this.#count(`an image was deleted with --cascade=${cascade}`);
    this.#images.cascade(ref, `the image ${nameOf(ref)}`, cascade);
  }

  #pauseImage(ref: Ref): void {
    this.#count('an image was paused');
    this.#images.annotate(ref, nameOf(ref), PAUSED, 'true');
  }

  #count(what: UserAction): void {
    this.#simulation.counts.add(what);
  }
}

/** Whether the source of an image does not exist. */
export function isMissing(image: StoredObject): boolean {
  return textAt(image, 'spec', 'url')?.startsWith(SOURCES.missing) === true;
}

function nameOf({ namespace, name }: Ref): string {
  return `${namespace}/${name}`;
}

function refOf({ namespace = '', name }: { readonly namespace?: string; readonly name: string }): Ref {
  return { namespace, name };
}
