import { conditionOf, ForbiddenError, isTrue, schema } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import type { DataVolume, KubevirtMachine, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import type { VMDiskImage, VMDiskImageStatus } from '../vmdiskimage/resource.ts';
import { machineDraft, secretDraft, volumeDraft } from './children.ts';
import { cloudInitOf } from './cloud-init.ts';
import { expansionRejection } from './errors.ts';
import type { Observed } from './observe.ts';
import { type Plan, plan } from './plan.ts';
import { VirtualMachine, type VirtualMachineStatus } from './resource.ts';
import { hasNewIntent, withVolumeReady } from './status.ts';

const NOW = Date.parse('2026-11-17T10:00:00Z');
const DISK = 'demo-root-0a1b2c3d';
const TEMPLATE = {
  secretRef: '',
  sourceType: 'http',
  url: 'https://example.com/a',
  diskSize: '24Gi',
} as const;

type Spec = VirtualMachine['spec'];

function vm(
  spec: Partial<Spec> = {},
  status?: VirtualMachineStatus,
  annotations?: Record<string, string>,
): VirtualMachine {
  return {
    metadata: {
      namespace: 'work',
      name: 'demo',
      uid: '0a1b2c3d-0000',
      generation: 2,
      ...(annotations && { annotations }),
    },
    spec: {
      resources: { cpu: '2', memory: '2Gi', diskSize: '18Gi' },
      vmDiskImageRef: { name: 'base', namespace: 'farm' },
      ...spec,
    },
    ...(status && { status }),
  };
}

function image(status: VMDiskImageStatus = {}, spec: Partial<VMDiskImage['spec']> = {}): VMDiskImage {
  const snapshots = [{ name: 'snap-1', clones: 0 }];
  return {
    metadata: { namespace: 'farm', name: 'base' },
    spec: { ...TEMPLATE, ...spec },
    status: { phase: 'Ready', snapshots, ...status },
  };
}

const NOTHING: Observed = {
  imageAccess: { mayUse: true, mayCreate: true },
  clones: new Map(),
  passwords: { hashes: [] },
  volumes: [],
  missingNetworks: [],
  isMultusInstalled: true,
  filesystemOverhead: 0,
};

/** Neither the settings of the operator nor the image allow the VirtualMachine to use the image. */
const FORBIDDEN = { imageAccess: { mayUse: false, mayCreate: false } } as const;

const PLANNED: VirtualMachineStatus = { snapshot: 'snap-1', dataVolume: DISK };

function volume(object: VirtualMachine, phase: string, name = DISK): DataVolume {
  const draft = volumeDraft(object, image(), 'snap-1', name);
  return {
    ...draft,
    metadata: { ...draft.metadata, uid: `uid-of-${name}`, resourceVersion: '7' },
    status: { phase },
  };
}

function machine(object: VirtualMachine, status: KubevirtMachine['status'], disk = DISK): KubevirtMachine {
  const draft = machineDraft(object, disk);
  return {
    ...draft,
    metadata: { ...draft.metadata, uid: 'uid-of-machine', generation: 1 },
    ...(status && { status }),
  };
}

/** Returns the observed state when all children exist and the machine has this status. */
function all(object: VirtualMachine, printableStatus: string, more: Partial<Observed> = {}): Observed {
  const ready = printableStatus === 'Running';
  return {
    ...NOTHING,
    image: image(),
    secret: secretDraft(object, cloudInitOf(object, [])),
    volumes: [volume(object, 'Succeeded')],
    claim: { metadata: { namespace: 'work', name: DISK } },
    machine: machine(object, { printableStatus, ready }),
    ...more,
  };
}

const instance = { metadata: { namespace: 'work', name: 'demo', uid: 'uid-of-instance' } };
const types = ({ actions }: Plan) => actions.map(({ type }) => type);
const reasons = ({ events }: Plan) => events.map(({ reason }) => reason);
const condition = ({ status }: Plan, type: string) => conditionOf(status.conditions, type);

/** Plans, and checks that the status matches the schema of the kind. */
function next(object: VirtualMachine, observed: Partial<Observed>, now = NOW): Plan {
  const planned = plan(object, { ...NOTHING, ...observed }, now);
  const { spec } = object;
  expect(schema.validate(VirtualMachine.schema, { spec, status: planned.status })).toEqual([]);
  return planned;
}

/** Checks that a second plan, based on the reported status, changes nothing: no write, no action, no event. */
function isSettled(object: VirtualMachine, observed: Partial<Observed>): void {
  const first = next(object, observed);
  const again = next({ ...object, status: first.status }, observed);
  expect(again).toEqual({ status: first.status, actions: [], events: [] });
}

describe('images', () => {
  test('an image that is missing is created from the template, without an owner', () => {
    const planned = next(vm({ vmDiskImageTemplate: TEMPLATE }), {});
    expect(planned.actions).toEqual([
      {
        type: 'createImage',
        image: {
          metadata: {
            namespace: 'farm',
            name: 'base',
            annotations: { 'vmwright.dev/created-for': 'work/demo' },
          },
          spec: TEMPLATE,
        },
        event: expect.objectContaining({ reason: 'ImageCreated' }),
      },
    ]);
    expect(planned.events).toEqual([]);
    expect(planned.status).toMatchObject({ phase: 'Provisioning' });
    expect(hasNewIntent(undefined, planned.status)).toBe(false);
  });

  test('if the image is missing and the spec has no template for it, the status names the image', () => {
    const planned = next(vm(), {});
    expect(planned.actions).toEqual([]);
    expect(planned.status.message).toBe(
      'The VMDiskImage farm/base does not exist. Create it, or set spec.vmDiskImageTemplate',
    );
    expect(condition(planned, 'DiskImageReady')).toMatchObject({ status: 'False', reason: 'ImageNotFound' });
    isSettled(vm(), {});
  });

  test.for([
    ['Queued', 'Provisioning', 'ImageNotReady', 'is Queued'],
    ['Syncing', 'Provisioning', 'ImageNotReady', 'is Syncing'],
    ['RetryableFailure', 'Provisioning', 'ImageNotReady', 'is retried: no route'],
    ['Deleting', 'Provisioning', 'ImageNotReady', 'is being deleted'],
    ['Failed', 'Failed', 'ImageFailed', 'has failed: no route'],
  ] as const)('an image in phase %s keeps the machine in phase %s', ([phase, expected, reason, text]) => {
    const planned = next(vm(), { image: image({ phase, message: 'no route' }) });
    expect(planned.actions).toEqual([]);
    expect(planned.status).toMatchObject({ phase: expected, message: expect.stringContaining(text) });
    expect(condition(planned, 'Ready')).toMatchObject({ status: 'False', reason });
    const recovered = next(vm({}, planned.status), { image: image() });
    expect(recovered.status.phase).toBe('Provisioning');
    expect(types(recovered)).toContain('createVolume');
  });

  test('an image that differs from the template is used, and the condition ImageDiffers names the fields', () => {
    const object = vm({ vmDiskImageTemplate: { ...TEMPLATE, diskSize: '25769803776', checksum: 'md5:0' } });
    const planned = next(object, { image: image() });
    expect(condition(planned, 'ImageDiffers')).toMatchObject({ status: 'True' });
    expect(condition(planned, 'ImageDiffers')?.message).toContain('in checksum;');
    const same = next(vm({ vmDiskImageTemplate: TEMPLATE }, planned.status), { image: image() });
    expect(condition(same, 'ImageDiffers')).toBeUndefined();
  });

  test('a machine that has its disk stays Ready if its image fails', () => {
    const object = vm({}, PLANNED);
    const observed = all(object, 'Running', { image: image({ phase: 'Failed' }) });
    const planned = next(object, observed);
    expect(planned.status.phase).toBe('Ready');
    expect(condition(planned, 'DiskImageReady')).toMatchObject({ status: 'False', reason: 'ImageFailed' });
    isSettled(object, observed);
  });
});

describe('rejections', () => {
  const clash = { address: '10.0.0.1', network: 'work/net' };
  test.for<readonly [string, Partial<Spec>, Partial<Observed>, string]>([
    ['ImageNamespaceNotAllowed', {}, FORBIDDEN, 'images of the namespace farm'],
    [
      'UserNamesCollide',
      { users: [{ name: 'A b' }, { name: 'a-b' }] },
      {},
      'the users "A b" and "a-b" have the same login name "a-b"',
    ],
    [
      'AddressConflict',
      {},
      { addressConflict: { ...clash, holder: { namespace: 'work', name: 'first' } } },
      'is used by the VirtualMachine "first" in this namespace',
    ],
    [
      'AddressConflict',
      {},
      { addressConflict: { ...clash, holder: { namespace: 'other', name: 'first' } } },
      'is used by a VirtualMachine in another namespace',
    ],
  ])('a VirtualMachine is Failed while it has the problem %s', ([reason, spec, observed, text]) => {
    const object = vm({ vmDiskImageTemplate: TEMPLATE, ...spec });
    const planned = next(object, observed);
    expect(planned.actions).toEqual([]);
    expect(planned.status).toMatchObject({ phase: 'Failed', message: expect.stringContaining(text) });
    expect(condition(planned, 'Stalled')).toMatchObject({ reason });
    expect(reasons(planned)).toContain(reason);
    isSettled(object, observed);
    const later = next(vm({}, planned.status), { image: image() });
    expect(later.status.phase).toBe('Provisioning');
    expect(condition(later, 'Stalled')).toBeUndefined();
  });
});

describe('address conflicts', () => {
  const holder = { namespace: 'work', name: 'first' };
  const addressConflict = { address: '10.0.0.1', network: 'work/net', holder };
  const object = vm({}, PLANNED);

  test('a machine is halted while its address is in use by another VirtualMachine', () => {
    const running = all(object, 'Running', { instance, addressConflict });
    const planned = next(object, running);
    expect(planned.actions).toMatchObject([
      {
        type: 'applyMachine',
        machine: { spec: { runStrategy: 'Halted' } },
        isNew: false,
        reason: 'another VirtualMachine keeps its address',
      },
    ]);
    expect(planned.status).toMatchObject({ phase: 'Failed', ...PLANNED });
    expect(planned.status.message).toContain(
      'is used by the VirtualMachine "first" in this namespace. Choose another address; the machine is halted until then',
    );
    const halted = { ...machineDraft(object, DISK, true), status: { printableStatus: 'Stopped' } };
    isSettled(object, { ...running, machine: halted, instance: undefined });
    const later = all(object, 'Stopped', { machine: halted });
    expect(next(object, later).actions).toMatchObject([
      { type: 'applyMachine', machine: { spec: { runStrategy: 'Always' } } },
    ]);
  });

  test('a machine with an address conflict is not halted if it is paused, terminating, or in conflict with itself', () => {
    const paused = vm({}, PLANNED, { 'vmwright.dev/paused': 'true' });
    expect(next(paused, all(paused, 'Running', { addressConflict })).actions).toEqual([]);
    const { metadata, ...rest } = machine(object, { printableStatus: 'Running' });
    const terminating = { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-11-17T10:00:00Z' } };
    const observed = all(object, 'Running', { machine: terminating, addressConflict });
    expect(next(object, observed).actions).toEqual([]);
    const own = { ...addressConflict, holder: object.metadata };
    expect(next(object, all(object, 'Running', { addressConflict: own })).actions).toEqual([]);
  });
});

describe('images that the machine may use but not create', () => {
  const access = { imageAccess: { mayUse: true, mayCreate: false } } as const;
  const object = vm({ vmDiskImageTemplate: TEMPLATE });

  test('a machine waits for a missing image that it is not allowed to create', () => {
    const planned = next(object, access);
    expect([planned.status.phase, planned.actions]).toEqual(['Provisioning', []]);
    expect(condition(planned, 'DiskImageReady')).toMatchObject({ reason: 'ImageCreationNotAllowed' });
    expect(planned.status.message).toContain('(--image-creation-namespaces)');
    isSettled(object, access);
  });

  test('a machine uses an existing image that it is not allowed to create', () => {
    const planned = next(object, { ...access, image: image() });
    expect(condition(planned, 'DiskImageReady')).toMatchObject({ status: 'True' });
  });

  test('if the machine may not create its terminating image again, the status asks the user to create it', () => {
    const planned = next(object, { ...access, image: image({ phase: 'Deleting' }) });
    expect(planned.status.message).toContain('create it again when it is gone');
    expect(planned.status.message).not.toContain('the operator creates');
  });
});

describe('images in a namespace that is no longer allowed', () => {
  const object = vm({ vmDiskImageTemplate: TEMPLATE }, PLANNED);
  test('a machine that has its disk is maintained even if its image is no longer allowed', () => {
    const observed = all(object, 'Running', { ...FORBIDDEN, image: undefined });
    const planned = next(object, observed);
    expect([planned.status.phase, planned.actions]).toEqual(['Ready', []]);
    expect(condition(planned, 'DiskImageReady')).toMatchObject({ reason: 'ImageNamespaceNotAllowed' });
    isSettled(object, observed);
    expect(types(next(object, { ...observed, machine: undefined }))).toEqual(['applyMachine']);
  });

  test('a lost disk is not cloned again if its image is no longer allowed', () => {
    const planned = next(object, all(object, 'Stopped', { ...FORBIDDEN, volumes: [], claim: undefined }));
    expect([planned.status.phase, planned.actions]).toEqual(['Failed', []]);
  });
});

describe('root disks', () => {
  test('the name of a root disk is stored in the status before the disk is created', () => {
    const planned = next(vm(), { image: image({}, { storageClass: 'fast' }) });
    expect(types(planned)).toEqual(['applySecret', 'createVolume', 'applyMachine']);
    expect(planned.status).toMatchObject(PLANNED);
    expect(hasNewIntent({}, planned.status)).toBe(true);
    expect(planned.actions[1]).toMatchObject({
      volume: {
        metadata: { namespace: 'work', name: DISK },
        spec: {
          source: { snapshot: { namespace: 'farm', name: 'snap-1' } },
          storage: { storageClassName: 'fast', resources: { requests: { storage: '24Gi' } } },
        },
      },
    });
  });

  test('the root disk of a machine that stays stopped is bound immediately, even on WaitForFirstConsumer storage', () => {
    const annotation = 'cdi.kubevirt.io/storage.bind.immediate.requested';
    const [, stopped] = next(vm({ ignoreOnDeploy: true }), { image: image() }).actions;
    expect(stopped).toMatchObject({ volume: { metadata: { annotations: { [annotation]: 'true' } } } });
    const [, running] = next(vm(), { image: image() }).actions;
    expect(JSON.stringify(running)).not.toContain(annotation);
  });

  test.for(['WaitForFirstConsumer', 'PendingPopulation'])(
    'the status says what to do if ignoreOnDeploy is set while the root disk has the phase %s',
    (phase) => {
      const halted = vm({ ignoreOnDeploy: true }, PLANNED);
      const waiting = all(halted, 'Stopped', { volumes: [volume(vm(), phase)] });
      const planned = next(halted, waiting);
      expect(condition(planned, 'Ready')).toMatchObject({ status: 'False', reason: 'WaitForFirstConsumer' });
      expect(planned.status.message).toContain('Set ignoreOnDeploy to false, or delete the DataVolume');
      isSettled(halted, waiting);
      const bound = next(halted, { ...waiting, volumes: [volume(halted, phase)] });
      expect(bound.status.message).not.toContain('delete the DataVolume');
    },
  );

  test('the stored names of the root disk and of its source snapshot are used again after a crash', () => {
    const object = vm({}, PLANNED);
    const planned = next(object, {
      image: image({
        snapshots: [
          { name: 'snap-1', clones: 0 },
          { name: 'snap-2', clones: 0 },
        ],
      }),
    });
    expect(planned.status).toMatchObject(PLANNED);
    expect(types(planned)).toContain('createVolume');
    expect(reasons(planned)).toEqual([]);
    expect(hasNewIntent(PLANNED, planned.status)).toBe(false);
  });

  test('no root disk is cloned while every snapshot has its maximum number of clones', () => {
    const snapshots = [
      { name: 'snap-1', clones: 2 },
      { name: 'snap-2', clones: 0 },
    ];
    const full = image({ snapshots }, { maxClones: 2 });
    const waiting = next(vm(), { image: full, clones: new Map([['snap-2', 2]]) });
    expect(waiting.actions).toEqual([]);
    expect(condition(waiting, 'VolumeReady')).toMatchObject({ reason: 'NoFreeSnapshot' });
    expect(waiting.requeueAfterMs).toBeGreaterThan(0);
    const free = next(vm(), { image: full, clones: new Map([['snap-2', 1]]) });
    expect(free.status.snapshot).toBe('snap-2');
  });

  test('a root disk that was deleted is cloned again under another name, with a warning', () => {
    const object = vm({}, PLANNED);
    const terminating = { namespace: 'work', name: DISK, deletionTimestamp: '2026-11-17T09:00:00Z' };
    const observed = all(object, 'Running', { volumes: [], instance, claim: { metadata: terminating } });
    const planned = next(object, observed);
    expect(next(object, { ...observed, claim: undefined }).status.dataVolume).toBe(`${DISK}-2`);
    expect(planned.status).toMatchObject({ snapshot: 'snap-1', dataVolume: `${DISK}-2` });
    expect(types(planned)).toEqual(['createVolume', 'applyMachine']);
    expect(reasons(planned)).toEqual(['VolumeLost']);
    // If the creation has failed, the next reconcile keeps the name and does not warn again.
    const again = next({ ...object, status: planned.status }, { ...observed, claim: undefined });
    expect(again.status.dataVolume).toBe(`${DISK}-2`);
    expect(types(again)).toContain('createVolume');
    expect(reasons(again)).toEqual([]);
  });

  test('a root disk without a DataVolume is used if its claim is Bound', () => {
    const object = vm({}, PLANNED);
    const kept = { metadata: { namespace: 'work', name: DISK }, status: { phase: 'Bound' } };
    const observed = all(object, 'Running', { volumes: [], instance, claim: kept });
    const planned = next(object, observed);
    expect(planned.status).toMatchObject({ phase: 'Ready', dataVolume: DISK });
    expect(condition(planned, 'VolumeReady')).toMatchObject({
      status: 'True',
      reason: 'VolumeWithoutDataVolume',
      message: expect.stringContaining(`The PersistentVolumeClaim work/${DISK} exists and is used`),
    });
    isSettled(object, observed);
    const stopped = next(object, { ...observed, machine: undefined });
    expect(stopped.actions).toMatchObject([
      { type: 'applyMachine', machine: machineDraft(object, DISK), isNew: true },
    ]);
    const pending = next(object, { ...observed, claim: { ...kept, status: { phase: 'Pending' } } });
    expect([types(pending), condition(pending, 'VolumeReady')?.status]).toEqual([[], 'False']);
  });

  test('a root disk is not replaced before the garbage collector has deleted its claim', () => {
    const object = vm({}, PLANNED);
    const owner = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name: DISK, uid: 'gone' };
    const metadata = { namespace: 'work', name: DISK, ownerReferences: [{ ...owner, controller: true }] };
    const claim = { metadata, status: { phase: 'Bound' } };
    const planned = next(object, all(object, 'Running', { volumes: [], instance, claim }));
    expect([types(planned), planned.status.dataVolume]).toEqual([[], DISK]);
    expect(condition(planned, 'VolumeReady')).toMatchObject({ status: 'False', reason: 'VolumeDeleting' });
    expect(planned.requeueAfterMs, 'the cache may never show the claim').toBe(30_000);
  });

  test('a root disk that was deleted is not replaced while the image is not Ready', () => {
    const object = vm({}, PLANNED);
    const lost = { volumes: [], claim: undefined, image: image({ phase: 'Syncing' }) };
    const planned = next(object, all(object, 'Stopped', lost));
    expect(planned.actions).toEqual([]);
    expect(planned.status.dataVolume).toBe(DISK);
  });

  test('a root disk is replaced if its source snapshot is gone before its clone is complete', () => {
    const object = vm({}, PLANNED);
    const renewed = image({ snapshots: [{ name: 'snap-9', clones: 0 }] });
    const pending = volume(object, 'Pending');
    const planned = next(object, { image: renewed, volumes: [pending] });
    expect(planned.status).toMatchObject(PLANNED);
    const { uid, resourceVersion } = pending.metadata;
    const reason = 'the snapshot that it is cloned from is gone';
    expect(planned.actions).toContainEqual({
      type: 'deleteVolume',
      name: DISK,
      uid,
      resourceVersion,
      reason,
    });
    expect(types(planned)).not.toContain('createVolume');
    const gone = next(object, { image: renewed, volumes: [] });
    expect(gone.status.snapshot).toBe('snap-9');
    expect(types(gone)).toContain('createVolume');
    const kept = next(object, all(object, 'Running', { image: renewed }));
    expect(kept.actions).toEqual([]);
    expect(kept.status).toMatchObject(PLANNED);
  });

  test('a root disk that was replaced before its clone succeeded is deleted', () => {
    const object = vm({}, { ...PLANNED, dataVolume: `${DISK}-2` });
    const current = volume(object, 'Succeeded', `${DISK}-2`);
    const claim = { metadata: { namespace: 'work', name: `${DISK}-2` } };
    const observed = (phase: string) => ({
      image: image(),
      volumes: [volume(object, phase), current],
      claim,
    });
    expect(next(object, observed('Pending')).actions).toContainEqual(
      expect.objectContaining({
        type: 'deleteVolume',
        name: DISK,
        reason: 'it was replaced by another disk before its clone succeeded',
      }),
    );
    expect(types(next(object, observed('Succeeded')))).not.toContain('deleteVolume');
  });

  test('a root disk is found again if the status was removed', () => {
    const object = vm();
    const second = `${DISK}-2`;
    const planned = next(
      object,
      all(object, 'Running', {
        volumes: [volume(object, 'Succeeded', second)],
        machine: machine(object, { printableStatus: 'Running', ready: true }, second),
      }),
    );
    expect(planned.status).toMatchObject({ dataVolume: second, snapshot: 'snap-1' });
    expect(planned.actions).toEqual([]);
  });

  test('a foreign DataVolume with the name of the root disk is a name conflict', () => {
    const foreignVolume = { metadata: { namespace: 'work', name: DISK } };
    const planned = next(vm(), { image: image(), foreignVolume });
    expect(planned.actions).toEqual([]);
    expect(planned.status).toMatchObject({ phase: 'Failed' });
    expect(planned.status.message).toContain(`The DataVolume work/${DISK} exists and was not created for`);
  });

  test('a root disk that failed is reported with the cause and the remedy', () => {
    const object = vm({}, PLANNED);
    const failed = {
      ...volume(object, 'Failed'),
      status: { phase: 'Failed', conditions: [{ type: 'Running', status: 'False', message: 'no space' }] },
    };
    const planned = next(object, all(object, 'DataVolumeError', { volumes: [failed], instance }));
    expect(planned.status).toMatchObject({ phase: 'Provisioning' });
    expect(planned.status.message).toContain('has failed (no space). Delete the DataVolume to try again');
    expect(types(planned)).not.toContain('restart');
  });
});

describe('growth of root disks', () => {
  const grown = { cpu: '2', memory: '2Gi', diskSize: '30Gi' };
  const object = vm({ resources: grown }, PLANNED);
  const claim = (storage: string, status: PersistentVolumeClaim['status'] = {}): PersistentVolumeClaim => ({
    metadata: { namespace: 'work', name: DISK, uid: 'uid-of-claim' },
    spec: { resources: { requests: { storage } } },
    status,
  });
  const storageClass = { name: 'fast', exists: true, allowsExpansion: true };

  test('the claim of a root disk is expanded if the spec asks for a larger disk', () => {
    const planned = next(object, all(object, 'Running', { claim: claim('24Gi'), storageClass }));
    expect(planned.actions).toEqual([{ type: 'resizeClaim', name: DISK, uid: 'uid-of-claim', size: '30Gi' }]);
    const small = vm({ resources: { cpu: '2', memory: '2Gi', diskSize: '24Gi' } }, PLANNED);
    const cloned = { claim: claim('24Gi'), storageClass, filesystemOverhead: 0.06 };
    expect(next(small, all(small, 'Running', cloned)).actions, 'only the overhead changed').toEqual([]);
    // The claim of a disk on a file system is larger than the disk.
    const onFilesystem = { claim: claim('24Gi'), storageClass, filesystemOverhead: 0.06 };
    expect(next(object, all(object, 'Running', onFilesystem)).actions).toMatchObject([
      { size: String(Math.ceil((30 * 2 ** 30) / 0.94)) },
    ]);
    expect(isTrue(planned.status.conditions, 'VolumeReady')).toBe(true);
  });

  test.for(['exceeded quota: q', 'denied by policy p'])(
    'a root disk stays ready if its growth is rejected (%s)',
    (text) => {
      const startFailure = { lastFailedVMIUID: 'uid-of-failed' };
      const looping = all(object, 'CrashLoopBackOff', {
        instance,
        claim: claim('24Gi'),
        storageClass,
        machine: machine(object, { printableStatus: 'CrashLoopBackOff', startFailure }),
      });
      const planned = next(object, looping);
      expect(types(planned)).toEqual(['resizeClaim']);
      const rejection = expansionRejection(new ForbiddenError(text, { status: 403 }));
      if (rejection === undefined) throw new Error('the rejection is not reported');
      const status = withVolumeReady(object, planned.status, rejection, NOW);
      expect(conditionOf(status.conditions, 'VolumeReady')).toMatchObject({
        status: 'True',
        reason: 'ExpansionRejected',
        message: `The root disk cannot grow: ${text}`,
      });
      const retried = next({ ...object, status }, looping, NOW + 30_000);
      expect([types(retried), retried.events]).toEqual([['resizeClaim'], []]);
      expect(hasNewIntent(status, retried.status)).toBe(false);
      expect(withVolumeReady({ ...object, status }, retried.status, rejection, NOW + 30_000)).toEqual(status);
    },
  );

  test('a root disk does not grow if only its image was enlarged', () => {
    const enlarged = image({}, { diskSize: '40Gi' });
    const observed = { claim: claim('24Gi'), storageClass, image: enlarged };
    expect(next(vm({}, PLANNED), all(vm(), 'Running', observed)).actions).toEqual([]);
    expect(next(object, all(object, 'Running', observed)).actions).toMatchObject([{ size: '30Gi' }]);
  });

  test('one event reports that the storage class does not allow a root disk to grow', () => {
    const observed = all(object, 'Running', {
      claim: claim('24Gi'),
      storageClass: { ...storageClass, allowsExpansion: false },
    });
    const planned = next(object, observed);
    expect(planned.actions).toEqual([]);
    expect(condition(planned, 'VolumeReady')?.message).toContain('cannot grow from 24Gi to 30Gi');
    expect(reasons(planned)).toEqual(['ExpansionNotSupported']);
    isSettled(object, observed);
  });

  test('the status of a growing root disk reports the conditions of the claim', () => {
    const pending = [{ type: 'FileSystemResizePending', status: 'True' }];
    const failing = [{ type: 'ControllerResizeError', status: 'True', message: 'pool is full' }];
    const message = (conditions: typeof failing | typeof pending) =>
      condition(
        next(
          object,
          all(object, 'Running', {
            claim: claim('30Gi', { capacity: { storage: '24Gi' }, conditions }),
            storageClass,
          }),
        ),
        'VolumeReady',
      )?.message;
    expect(message(pending)).toContain('is completed when the machine restarts');
    expect(message(failing)).toContain('pool is full');
  });
});

describe('machines', () => {
  const object = vm({}, PLANNED);

  test('a machine that KubeVirt reports as running and ready gets the phase Ready', () => {
    const observed = all(object, 'Running', {
      instance: {
        ...instance,
        status: { phase: 'Running', nodeName: 'node-1', interfaces: [{ ipAddress: '10.2.3.4' }] },
      },
    });
    expect(next(object, observed).status).toMatchObject({
      phase: 'Ready',
      printableStatus: 'Running',
      ip: '10.2.3.4',
      node: 'node-1',
    });
    isSettled(object, observed);
  });

  test('a machine reports its static address once it runs', () => {
    const configured = vm({ interfaces: [{ network: 'net', ipAddress: '10.0.0.7/24' }] }, PLANNED);
    const { annotations = {} } = machineDraft(configured, DISK).spec?.template?.metadata ?? {};
    const started = { metadata: { ...instance.metadata, annotations } };
    const at = (printableStatus: string, of = configured) =>
      next(of, all(of, printableStatus, { instance: started })).status.ip;
    expect([at('Starting'), at('Running')]).toEqual([undefined, '10.0.0.7']);
    const changed = vm({ interfaces: [{ network: 'net', ipAddress: '10.0.0.8/24' }] }, PLANNED);
    expect(at('Running', changed)).toBeUndefined();
  });

  test.for(['Stopped', 'Provisioning', 'Starting', 'Stopping', 'Unknown', ''])(
    'a machine with the status "%s" is not Ready and not Failed',
    (printableStatus) => {
      expect(next(object, all(object, printableStatus)).status.phase).toBe('Provisioning');
    },
  );

  test('a machine that KubeVirt reports as running but not ready is not Ready', () => {
    const observed = all(object, 'Running', {
      machine: machine(object, { printableStatus: 'Running', ready: false }),
    });
    expect(next(object, observed).status.phase).toBe('Provisioning');
  });

  test('a machine with ignoreOnDeploy is Ready when its disk is cloned and the machine is stopped', () => {
    const ignored = vm({ ignoreOnDeploy: true }, PLANNED);
    const observed = all(ignored, 'Stopped');
    expect(condition(next(ignored, observed), 'Ready')).toMatchObject({
      status: 'True',
      reason: 'IgnoredOnDeploy',
    });
    isSettled(ignored, observed);
    const cloning = all(ignored, 'Stopped', { volumes: [volume(ignored, 'CloneInProgress')] });
    expect(next(ignored, cloning).status.phase).toBe('Provisioning');
    // The spec was just changed: KubeVirt still has the previous run strategy.
    const changed = all(ignored, 'Stopped', { machine: machine(object, { printableStatus: 'Stopped' }) });
    const planned = next(ignored, changed);
    expect([planned.status.phase, types(planned)]).toEqual(['Provisioning', ['applyMachine']]);
  });

  test('a machine that was changed by hand is applied again', () => {
    const wanted = machine(object, { printableStatus: 'Running', ready: true });
    const changed = { ...wanted, spec: { ...wanted.spec, runStrategy: 'Manual' } };
    expect(types(next(object, all(object, 'Running', { machine: changed })))).toEqual(['applyMachine']);
    const labelled = {
      ...wanted,
      metadata: { ...wanted.metadata, labels: { ...wanted.metadata.labels, team: 'a' } },
    };
    expect(next(object, all(object, 'Running', { machine: labelled })).actions).toEqual([]);
  });

  test('a machine that was deleted is created again', () => {
    const planned = next(object, all(object, '', { machine: undefined }));
    expect(planned.actions).toMatchObject([
      { type: 'applyMachine', isNew: true, reason: 'the VirtualMachine has no machine' },
    ]);
  });

  test('a machine with ignoreOnDeploy is not Ready when the claim of its disk is gone', () => {
    const ignored = vm({ ignoreOnDeploy: true }, PLANNED);
    const planned = next(ignored, all(ignored, 'Stopped', { claim: undefined }));
    for (const type of ['Ready', 'VolumeReady'])
      expect(condition(planned, type)).toMatchObject({ status: 'False', reason: 'ClaimNotFound' });
    expect(planned.actions).toEqual([]);
  });

  test('a machine is not applied while it is being deleted', () => {
    const wanted = machine(vm({ ignoreOnDeploy: true }), {});
    const terminating = {
      ...wanted,
      metadata: { ...wanted.metadata, deletionTimestamp: '2026-11-17T09:00:00Z' },
    };
    const planned = next(object, all(object, '', { machine: terminating }));
    expect(planned.actions).toEqual([]);
    expect(condition(planned, 'Ready')).toMatchObject({ reason: 'MachineDeleting' });
  });

  test('a machine loses a label when the spec no longer sets the label', () => {
    const described = vm({ version: '1.0' }, PLANNED);
    const observed = all(object, 'Running', {
      machine: machine(described, { printableStatus: 'Running', ready: true }),
    });
    expect(types(next(object, observed))).toEqual(['applyMachine']);
    expect(next(described, observed).actions).toEqual([]);
  });
});

describe('Secrets', () => {
  const object = vm({ users: [{ name: 'demo', plain_text_passwd: 'x' }] }, PLANNED);

  test('a deleted or changed Secret with the cloud-init data is applied again', () => {
    const observed = all(object, 'Running', { passwords: { hashes: ['$6$a'] } });
    expect(types(next(object, observed))).toEqual(['applySecret']); // the Secret of the fixture has no password
    expect(next(object, { ...observed, secret: undefined }).actions).toMatchObject([
      { type: 'applySecret', isNew: true },
    ]);
  });

  test('neither cloud-init Secret nor machine is created while a password cannot be read', () => {
    const problem = {
      reason: 'PasswordSecretMissing',
      message: 'The Secret work/pw does not exist',
    } as const;
    const planned = next(object, {
      image: image(),
      volumes: [volume(object, 'Pending')],
      passwords: { problem },
    });
    expect(planned.actions).toEqual([]);
    expect(planned.status).toMatchObject({ phase: 'Provisioning', message: problem.message });
    expect(planned.requeueAfterMs).toBe(30_000);
    // A machine that already has its Secret stays Ready, and its Secret is not changed.
    const running = next(object, all(object, 'Running', { passwords: { problem } }));
    expect(running.status.phase).toBe('Ready');
    expect(running.actions).toEqual([]);
  });

  test('illegal user names are changed in the Secret with the cloud-init data, and the change is reported once', () => {
    const illegal = vm({ users: [{ name: 'demo user' }] });
    const planned = next(illegal, { image: image() });
    expect(condition(planned, 'UserNamesChanged')?.message).toContain('"demo user" to "demo-user"');
    expect(reasons(planned)).toEqual(['UserNamesChanged']);
    expect(reasons(next({ ...illegal, status: planned.status }, { image: image() }))).toEqual([]);
  });
});

describe('restarts', () => {
  const object = vm({}, PLANNED);
  const stuck = all(object, 'ErrorPvcNotFound', {
    instance,
    claim: { metadata: { namespace: 'work', name: DISK } },
  });

  test('a stuck machine is restarted with a back-off', () => {
    let status = next(object, stuck).status;
    expect(next(object, stuck)).toMatchObject({ actions: [], requeueAfterMs: 10_000 });
    expect(next(vm({}, status), stuck, NOW + 4_000).requeueAfterMs).toBe(6_000);
    const first = next(vm({}, status), stuck, NOW + 10_000);
    const reason = 'KubeVirt reports ErrorPvcNotFound although the root disk is ready';
    expect(first.actions).toEqual([{ type: 'restart', uid: 'uid-of-instance', reason }]);
    expect(first.status).toMatchObject({ restarts: 1, restartedAt: '2026-11-17T10:00:10.000Z' });
    expect(first.status.stuckSince).toBeUndefined();
    expect(hasNewIntent(status, first.status)).toBe(true);
    expect(reasons(first)).toEqual(['Restarted']);
    const again = { ...stuck, instance: { metadata: { ...instance.metadata, uid: 'uid-of-next' } } };
    status = next(vm({}, first.status), again, NOW + 11_000).status;
    expect(next(vm({}, status), again, NOW + 11_000).requeueAfterMs).toBe(20_000);
    const many = { ...status, restarts: 30 };
    expect(next(vm({}, many), again, NOW + 11_000).requeueAfterMs).toBe(300_000);
  });

  test('a restart that a crash interrupted continues and is not counted again', () => {
    const stored = next(vm({}, next(object, stuck).status), stuck, NOW + 10_000).status;
    expect(stored.restartedInstance).toBe('uid-of-instance');
    const planned = next(vm({}, stored), stuck, NOW + 11_000);
    const reason = 'an earlier restart was interrupted';
    expect(planned.actions).toEqual([{ type: 'restart', uid: 'uid-of-instance', reason }]);
    expect([planned.status.restarts, planned.events]).toEqual([1, []]);
    expect(hasNewIntent(stored, planned.status)).toBe(false);
    const terminating = { metadata: { ...instance.metadata, deletionTimestamp: '2026-11-17T10:00:00Z' } };
    expect(next(vm({}, stored), { ...stuck, instance: terminating }).actions).toEqual([]);
    // If the disk was replaced after the crash, the restart does not continue. It would stop the running guest, which
    // still uses the old disk.
    const old = { ...instance, spec: machine(object, {}, 'old').spec?.template?.spec };
    if (old.spec === undefined) throw new Error('the machine has no template');
    const replaced = all(object, 'Running', { instance: { ...old, spec: old.spec } });
    const restarting = vm({ updatePolicy: 'Restart' }, { ...stored, restartedGeneration: 1 });
    expect(next(restarting, replaced).actions).toEqual([]);
  });

  test('a stuck machine is restarted only if its disk is ready and its instance is not being deleted', () => {
    const late = NOW + 3_600_000;
    const waiting = vm({}, { ...PLANNED, restarts: 2, stuckSince: '2026-11-17T10:00:00Z' });
    const terminating = { metadata: { ...instance.metadata, deletionTimestamp: '2026-11-17T10:00:00Z' } };
    for (const observed of [
      { ...stuck, instance: undefined },
      { ...stuck, instance: terminating },
      { ...stuck, volumes: [volume(object, 'Pending')] },
      all(object, 'CrashLoopBackOff', { instance }), // KubeVirt restarts the machine itself
    ])
      expect(types(next(waiting, observed, late))).not.toContain('restart');
    const ready = next(waiting, all(object, 'Running', { instance }), late).status;
    expect([ready.restarts, ready.stuckSince]).toEqual([undefined, undefined]);
  });

  describe('machines that were started before their disk was ready, and failed', () => {
    const failed = 'uid-of-failed';
    const conditions = [
      {
        type: 'VolumeReady',
        status: 'False',
        reason: 'Cloning',
        message: '',
        lastTransitionTime: '2026-11-17T09:00:00Z',
      },
    ] as const;
    const late = vm({}, { ...PLANNED, conditions });
    const looping = (lastFailedVMIUID: string, more: Partial<Observed> = {}) =>
      all(late, 'CrashLoopBackOff', {
        machine: machine(late, { printableStatus: 'CrashLoopBackOff', startFailure: { lastFailedVMIUID } }),
        ...more,
      });

    test('a machine that failed before its disk was ready is halted until KubeVirt clears the failure', () => {
      const planned = next(late, looping(failed));
      const reason = 'a halt ends the back-off of KubeVirt after a failed start';
      expect(planned.actions).toMatchObject([
        { type: 'applyMachine', machine: { spec: { runStrategy: 'Halted' } }, reason },
      ]);
      expect(reasons(planned)).toEqual(['Restarted']);
      expect(planned.status).toMatchObject({ restarts: 1, restartedInstance: failed });
      expect(hasNewIntent(late.status, planned.status)).toBe(true);
      const stored = vm({}, planned.status);
      const interrupted = next(stored, looping(failed));
      expect([types(interrupted), interrupted.events]).toEqual([['applyMachine'], []]);
      const halted = (status: KubevirtMachine['status']) =>
        all(late, '', { machine: { ...machineDraft(late, DISK, true), ...(status && { status }) } });
      expect(next(stored, halted({ startFailure: { lastFailedVMIUID: failed } })).actions).toEqual([]);
      expect(next(stored, halted({})).actions).toMatchObject([
        {
          type: 'applyMachine',
          machine: { spec: { runStrategy: 'Always' } },
          reason: 'the machine differs from the spec',
        },
      ]);
    });

    test('the operator restarts a machine only once if it failed before its disk was ready', () => {
      const stored = vm({}, next(late, looping(failed)).status);
      expect(next(stored, looping('uid-of-next')).actions).toEqual([]);
      expect(next(stored, looping(failed, { instance })).actions, 'another instance starts').toEqual([]);
    });

    test('an instance that was started before its disk was ready is restarted, unless the machine runs', () => {
      const starting = next(late, looping(failed, { instance }));
      const reason = 'it was started before its root disk was ready, and failed';
      expect(starting.actions).toEqual([{ type: 'restart', uid: 'uid-of-instance', reason }]);
      expect(starting.status.restartedInstance).toBe('uid-of-instance');
      expect(next(late, all(late, 'Running', { instance })).actions).toEqual([]);
    });

    test.for(['Running', 'Paused', 'Starting'])(
      'an interrupted restart is abandoned if the instance has recovered to the status %s',
      (printableStatus) => {
        const { status } = next(late, looping(failed, { instance }));
        expect(types(next(vm({}, status), looping(failed, { instance })))).toEqual(['restart']);
        for (const record of [status, { ...status, restartedGeneration: 1 }])
          expect(next(vm({}, record), all(late, printableStatus, { instance })).actions).toEqual([]);
        const restarting = vm({ updatePolicy: 'Restart' }, { ...status, restartedGeneration: 1 });
        expect(next(restarting, all(restarting, printableStatus, { instance })).actions).toEqual([]);
      },
    );

    test('a machine that failed to start is not restarted before its disk is ready', () => {
      const cloning = looping(failed, { volumes: [volume(late, 'CloneInProgress')] });
      expect(next(late, cloning)).toMatchObject({ actions: [], events: [] });
    });
  });

  test('a change that needs a restart is reported, or leads to one restart, depending on updatePolicy', () => {
    const conditions = [{ type: 'RestartRequired', status: 'True', message: 'cpu changed' }];
    const required = (of: VirtualMachine) =>
      all(of, 'Running', {
        instance,
        machine: machine(of, { printableStatus: 'Running', ready: true, conditions }),
      });
    const reported = next(object, required(object));
    expect(reported.actions).toEqual([]);
    expect(condition(reported, 'RestartRequired')?.message).toContain('cpu changed');
    // KubeVirt may fail to report that a restart is required, so the operator compares the running instance itself.
    const running = (cores: number, disk: string) => {
      const spec = machine(object, {}, disk).spec?.template?.spec;
      if (spec === undefined) throw new Error('the machine has no template');
      return { ...instance, spec: { ...spec, domain: { ...spec.domain, cpu: { cores } } } };
    };
    const because = (cores: number, disk: string) =>
      condition(next(object, all(object, 'Running', { instance: running(cores, disk) })), 'RestartRequired')
        ?.message;
    expect(because(1, DISK)).toContain('the number of virtual CPUs was changed');
    expect(because(2, 'old')).toContain('the root disk was replaced');
    expect(because(2, DISK)).toBeUndefined();
    const restarting = vm({ updatePolicy: 'Restart' }, PLANNED);
    const done = next(restarting, required(restarting));
    const reason = 'a change takes effect only after a restart (cpu changed)';
    expect(done.actions).toEqual([{ type: 'restart', uid: 'uid-of-instance', reason }]);
    expect(done.status.restartedGeneration).toBe(1);
    const interrupted = next({ ...restarting, status: done.status }, required(restarting));
    expect([types(interrupted), interrupted.events]).toEqual([['restart'], []]);
    const started = { metadata: { ...instance.metadata, uid: 'uid-of-next' } };
    const after = { ...required(restarting), instance: started };
    expect(next({ ...restarting, status: done.status }, after).actions).toEqual([]);
    // A restart would delete the data of the old disk, which the running guest still uses.
    const replaced = { ...required(restarting), instance: running(1, 'old') };
    const kept = next(restarting, replaced);
    expect(kept.actions).toEqual([]);
    expect(condition(kept, 'RestartRequired')?.message).toContain('the root disk was replaced');
    const cloning = { ...required(restarting), volumes: [volume(restarting, 'CloneInProgress')] };
    expect(next(restarting, cloning).actions).toEqual([]);
    const over = next(
      { ...restarting, status: done.status },
      all(restarting, 'Running', { instance: started }),
    );
    expect(condition(over, 'RestartRequired')).toBeUndefined();
  });
});

describe('paused VirtualMachines', () => {
  const paused = { 'vmwright.dev/paused': 'true' };

  test('a paused VirtualMachine is observed and nothing is planned', () => {
    const planned = next(vm({ vmDiskImageTemplate: TEMPLATE }, undefined, paused), {});
    expect([planned.actions, planned.events]).toEqual([[], []]);
    expect(isTrue(planned.status.conditions, 'Paused')).toBe(true);
    const withImage = next(vm({}, undefined, paused), { image: image() });
    expect([withImage.actions, withImage.status.snapshot]).toEqual([[], undefined]);
  });

  test('a paused VirtualMachine still reports the status of the machine', () => {
    const object = vm({}, PLANNED, paused);
    expect(next(object, all(object, 'Running')).status).toMatchObject({ phase: 'Ready', ...PLANNED });
  });
});
