import {
  ConnectionError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
  UnavailableError,
} from '@vmwright/runtime';
import { expect, test } from 'vitest';
import type { RequiredAction } from './actions.ts';
import { machineDraft, secretDraft, volumeDraft } from './children.ts';
import { expansionRejection, NameConflictError, problemOf } from './errors.ts';
import { imageFromTemplate } from './image-ref.ts';
import type { VirtualMachine } from './resource.ts';

const template = { secretRef: '', sourceType: 'blank', diskSize: '1Gi' } as const;
const vm: VirtualMachine = {
  metadata: { namespace: 'work', name: 'demo', uid: 'u-1' },
  spec: {
    resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
    vmDiskImageRef: { name: 'base', namespace: 'farm' },
    vmDiskImageTemplate: template,
  },
};
const image = { metadata: { namespace: 'farm', name: 'base' }, spec: template };
const draft = imageFromTemplate(vm) ?? image;
const createImage: RequiredAction = {
  type: 'createImage',
  image: draft,
  event: { type: 'Normal', reason: 'ImageCreated', note: '' },
};
const createVolume: RequiredAction = {
  type: 'createVolume',
  volume: volumeDraft(vm, image, 'snap', 'demo-root'),
};
const applyMachine: RequiredAction = {
  type: 'applyMachine',
  machine: machineDraft(vm, 'demo-root'),
  isNew: true,
  reason: '',
};
const applySecret: RequiredAction = {
  type: 'applySecret',
  secret: secretDraft(vm, { userdata: '' }),
  isNew: true,
};

const forbidden = (message: string) => new ForbiddenError(message, { status: 403 });
const invalid = (message: string) => new InvalidError(message, { status: 422 });

test.for<readonly [RequiredAction, Error, string, string, string]>([
  [
    createImage,
    new NotFoundError('no', { status: 404 }),
    'Provisioning',
    'ImageNamespaceNotFound',
    'The namespace farm of the VMDiskImage farm/base does not exist. Create it',
  ],
  [createImage, invalid('bad url'), 'Failed', 'ImageRejected', 'cannot be created: bad url'],
  [
    createVolume,
    forbidden('User "a" cannot create resource "datavolumes/source" in the namespace "farm"'),
    'Provisioning',
    'CloneForbidden',
    'the operator needs the permission to create datavolumes/source in the namespace farm',
  ],
  [
    createVolume,
    invalid('User a has insufficient permissions in clone source namespace farm'),
    'Provisioning',
    'CloneForbidden',
    'datavolumes/source in the namespace farm',
  ],
  [createVolume, forbidden('exceeded quota: q'), 'Provisioning', 'QuotaExceeded', 'exceeded quota: q'],
  [createVolume, forbidden('denied by policy p'), 'Provisioning', 'VolumeRejected', 'denied by policy p'],
  [createVolume, invalid('bad size'), 'Provisioning', 'VolumeRejected', 'bad size'],
  [
    applyMachine,
    invalid('too many disks'),
    'Failed',
    'MachineRejected',
    'work/demo is rejected: too many disks',
  ],
  [
    applyMachine,
    new NameConflictError('KubeVirt VirtualMachine', 'work/demo'),
    'Failed',
    'NameConflict',
    'The KubeVirt VirtualMachine work/demo exists and was not created for this VirtualMachine',
  ],
])('a rejected action is reported as a problem: %j', ([action, error, phase, reason, text]) => {
  const problem = problemOf(vm, action, error);
  expect(problem).toMatchObject({ phase, reason });
  expect(problem?.message).toContain(text);
});

test('the message about a rejected Secret does not repeat the server’s text', () => {
  const problem = problemOf(vm, applySecret, invalid('data: "hunter2" is too short'));
  expect(problem).toMatchObject({ reason: 'SecretRejected' });
  expect(problem?.message).not.toContain('hunter2');
  expect(problemOf(vm, applySecret, forbidden('exceeded quota, "hunter2"'))?.message).not.toContain(
    'hunter2',
  );
});

test('the status does not report a lost connection or a server error', () => {
  for (const error of [
    new ConnectionError('reset'),
    new UnavailableError('500', { status: 500 }),
    new TypeError('x'),
  ])
    expect(problemOf(vm, applyMachine, error)).toBeUndefined();
});

test('the growth of a disk is not reported as rejected if its claim is gone', () => {
  expect(expansionRejection(new NotFoundError('no', { status: 404 }))).toBeUndefined();
  expect(expansionRejection(forbidden('quota'))).toMatchObject({
    status: 'True',
    reason: 'ExpansionRejected',
  });
});
