import { describe, expect, test } from 'vitest';
import { instanceUuid } from '../vcenter/ownership.ts';
import { replicaName } from './identity.ts';
import { observePaused, plan, planDeletion, withAttempts } from './plan.ts';
import type { Replica, VmGroup, VmGroupStatus } from './resource.ts';
import type { Action, Machine, Observed, Operating } from './slots.ts';

const NOW = Date.parse('2026-11-16T12:00:00Z');
const [UBUNTU, DEBIAN] = ['vm-101', 'vm-102'];
const UID = '8b1f0a52-59b1-4e2c-8a54-5a1c9ae0e111';

function group(spec: Partial<VmGroup['spec']> = {}, status?: VmGroupStatus): VmGroup {
  return {
    apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
    kind: 'VmGroup',
    metadata: { name: 'web', namespace: 'shop', uid: UID, generation: 3 },
    spec: { cpu: 2, memory: 1, replicas: 3, template: 'ubuntu', ...spec },
    ...(status && { status }),
  };
}

function machine(slot: number, more: Partial<Machine> = {}): Machine {
  const hotAdd = { cpus: false, maxMemoryMb: 0 };
  return {
    slot,
    id: `vm-${slot}`,
    name: replicaName(group(), slot),
    power: 'poweredOn',
    isConnected: true,
    isInFolder: true,
    isTemplate: false,
    cpus: 2,
    memoryMb: 1_024,
    template: 'ubuntu',
    templateId: UBUNTU,
    hotAdd,
    ...more,
  };
}

function replica(slot: number, more: Partial<Replica> = {}): Replica {
  const created = new Date(NOW + slot * 1_000).toISOString();
  return { slot, name: replicaName(group(), slot), instanceUuid: instanceUuid(UID, slot), created, ...more };
}

function observed(machines: readonly Machine[] = [], more: Partial<Observed> = {}): Observed {
  const none = {
    operating: new Map(),
    backingOff: new Set<number>(),
    resizeRejected: new Set<number>(),
    gone: new Set<number>(),
    movedAway: new Map<number, string>(),
  };
  return { machines, ...none, areClonesBackingOff: false, errors: [], ...more };
}

const summary = (actions: readonly Action[]) => actions.map(({ type, slot }) => `${type} ${slot}`);
const three = [machine(0), machine(1), machine(2)];
const replicas = [replica(0), replica(1), replica(2)];
const terminatingSlots = ({ replicas: all = [] }: VmGroupStatus) =>
  all.flatMap(({ slot, terminating }) => (terminating ? slot : []));

describe('scaling out', () => {
  test('a new group gets a slot and a clone for each replica', () => {
    const { status, actions } = plan(group(), observed(), NOW);
    expect(summary(actions)).toEqual(['clone 0', 'clone 1', 'clone 2']);
    expect(status).toMatchObject({
      phase: 'PENDING',
      currentReplicas: 0,
      desiredReplicas: 3,
      readyReplicas: 0,
      lastMessage: '0 of 3 machines exist',
      replicas: [0, 1, 2].map((slot) => ({ slot, instanceUuid: instanceUuid(UID, slot) })),
    });
  });

  test('a clone into a slot that was used before is marked as a retry', () => {
    const isRetry = (actions: readonly Action[]) =>
      actions.map((action) => (action.type === 'clone' ? action.isRetry : undefined));
    const first = plan(group({ replicas: 2 }), observed(), NOW);
    expect(isRetry(first.actions)).toEqual([false, false]);
    expect(first.status.slotsUsed).toBe(2);
    const status = { ...first.status, replicas: [replica(0), replica(1, { attempts: 1 })] };
    const fewer = plan(group({ replicas: 1 }, status), observed([machine(0)], { gone: new Set([1]) }), NOW);
    expect(fewer.status).toMatchObject({ replicas: [{ slot: 0 }], slotsUsed: 2 });
    const more = plan(group({ replicas: 3 }, fewer.status), observed([machine(0)]), NOW);
    expect(summary(more.actions)).toEqual(['clone 1', 'clone 2']);
    expect(isRetry(more.actions)).toEqual([true, false]);
    const adopted = plan(group({ replicas: 1 }), observed([machine(0)]), NOW);
    expect(adopted.status.replicas?.[0]?.attempts).toBe(1);
  });

  test('new machines get the lowest slots that have neither a machine nor a clone in flight', () => {
    const operating = new Map<number, Operating>([[2, { type: 'clone', task: 'task-7' }]]);
    const status = { replicas: [replica(0), replica(2)] };
    const next = plan(group({ replicas: 4 }, status), observed([machine(0)], { operating }), NOW);
    expect(summary(next.actions)).toEqual(['clone 1', 'clone 3']);
    expect(next.status.replicas?.[2]).toMatchObject({ slot: 2, task: 'task-7' });
  });

  test('a machine that is missing from the status is adopted, not cloned again', () => {
    const next = plan(group({ replicas: 1 }), observed([machine(7)]), NOW);
    expect(summary(next.actions)).toEqual([]);
    expect(next.status.replicas?.map(({ slot }) => slot)).toEqual([7]);
  });

  test('each clone and each removal increases the counter of attempts in the status', () => {
    const { status, actions } = plan(group({ replicas: 1 }), observed(), NOW);
    expect(withAttempts(status, actions, NOW).replicas).toMatchObject([{ attempts: 1 }]);
    expect(withAttempts(status, [], NOW)).toEqual(status);
    const gone = plan(
      group({ replicas: 0 }, { replicas: [replica(0, { attempts: 1 })] }),
      observed([machine(0)]),
      NOW,
    );
    expect(withAttempts(gone.status, gone.actions, NOW).replicas).toMatchObject([
      { attempts: 2, terminating: true },
    ]);
  });

  test('while clones back off, no machine is cloned and other actions proceed', () => {
    const error = { reason: 'NoPermission', message: 'no' } as const;
    const machines = [machine(0, { power: 'poweredOff' })];
    const backingOff = observed(machines, { areClonesBackingOff: true, errors: [error] });
    const { status, actions } = plan(group({}, { replicas }), backingOff, NOW);
    expect(summary(actions)).toEqual(['powerOn 0']);
    expect(status).toMatchObject({ phase: 'ERROR', lastMessage: 'no', currentReplicas: 1, readyReplicas: 0 });
  });
});

test('a UUID that a user edited in the status is corrected before a machine is cloned or looked up', () => {
  const edited = [
    replica(0, { instanceUuid: 'edited' }),
    replica(1, { instanceUuid: 'edited', attempts: 1, terminating: true }),
  ];
  const { status, actions } = plan(group({ replicas: 1 }, { replicas: edited }), observed(), NOW);
  expect(status.replicas?.map(({ instanceUuid: uuid }) => uuid)).toEqual(
    [0, 1].map((slot) => instanceUuid(UID, slot)),
  );
  expect(actions).toMatchObject([
    { type: 'lookUp', slot: 1, instanceUuid: instanceUuid(UID, 1) },
    { type: 'clone', slot: 0, instanceUuid: instanceUuid(UID, 0) },
  ]);
});

describe('scaling in', () => {
  test('by default, scale-in first terminates the machines that do not run, and then the newest machines', () => {
    const machines = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    const { status, actions } = plan(group({ replicas: 1 }, { replicas }), observed(machines), NOW);
    expect(terminatingSlots(status)).toEqual([0, 2]);
    expect(summary(actions)).toEqual(['remove 0', 'remove 2']);
  });

  test.each([
    ['Newest', [1, 2]],
    ['Oldest', [0, 1]],
  ] as const)('scaleIn %s decides which machines are removed', (scaleIn, expected) => {
    const machines = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    const wanted = group({ replicas: 1, scaleIn }, { replicas });
    expect(terminatingSlots(plan(wanted, observed(machines), NOW).status)).toEqual(expected);
  });

  test('scale-in first drops slots into which nothing was cloned yet', () => {
    const two = observed([machine(1), machine(2)]);
    const { status, actions } = plan(group({ replicas: 2 }, { replicas }), two, NOW);
    expect(status.replicas?.map(({ slot }) => slot)).toEqual([1, 2]);
    expect(actions).toEqual([]);
    expect(status.phase).toBe('RUNNING');
  });

  test('a terminating slot is kept until a lookup proves that its machine is gone', () => {
    const used = [replica(0, { attempts: 1 }), replica(1, { attempts: 1 }), replica(2, { attempts: 1 })];
    const two = [machine(1), machine(2)];
    const first = plan(group({ replicas: 2 }, { replicas: used }), observed(two), NOW);
    expect(summary(first.actions)).toEqual(['lookUp 0']);
    expect(terminatingSlots(first.status)).toEqual([0]);
    expect(first.status).toMatchObject({ phase: 'PENDING', currentReplicas: 2 });
    const movedAway = new Map([[0, 'web-0']]);
    const backingOff = new Set([0]);
    const found = plan(group({ replicas: 2 }, first.status), observed(two, { movedAway, backingOff }), NOW);
    expect(found.actions).toEqual([]);
    expect(terminatingSlots(found.status)).toEqual([0]);
    expect(found.status).toMatchObject({
      phase: 'ERROR',
      lastMessage: "machine 'web-0' is no longer in the group's folder; move it back, or delete it",
    });
    const gone = plan(group({ replicas: 2 }, found.status), observed(two, { gone: new Set([0]) }), NOW);
    expect(gone.status).toMatchObject({ phase: 'RUNNING', replicas: [{ slot: 1 }, { slot: 2 }] });
  });

  test('scale to 0 removes every machine', () => {
    const { status, actions } = plan(group({ replicas: 0 }, { replicas }), observed(three), NOW);
    expect(summary(actions)).toEqual(['remove 0', 'remove 1', 'remove 2']);
    expect(status.phase).toBe('PENDING');
    const gone = plan(group({ replicas: 0 }, status), observed(), NOW).status;
    expect(gone).toMatchObject({ phase: 'RUNNING', currentReplicas: 0, replicas: [] });
  });

  test('a terminating slot is not reused: scaling out creates another slot', () => {
    const slots = [replica(0), replica(1), replica(2, { terminating: true })];
    const { actions, status } = plan(group({}, { replicas: slots }), observed(three), NOW);
    expect(summary(actions)).toEqual(['remove 2']);
    expect(status.replicas).toHaveLength(3);
    const after = plan(group({}, status), observed([machine(0), machine(1)]), NOW);
    expect(after.status.replicas?.map(({ slot, terminating }) => [slot, terminating])).toEqual([
      [0, undefined],
      [1, undefined],
      [3, undefined],
    ]);
    expect(summary(after.actions)).toEqual(['clone 3']);
  });
});

describe('drift', () => {
  test('machines that are powered off or suspended are powered on', () => {
    const machines = [machine(0, { power: 'poweredOff' }), machine(1, { power: 'suspended' }), machine(2)];
    const { status, actions } = plan(group({}, { replicas }), observed(machines), NOW);
    expect(summary(actions)).toEqual(['powerOn 0', 'powerOn 1']);
    expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 1, lastMessage: '1 of 3 machines run' });
  });

  test('a deleted machine is cloned again in its slot', () => {
    const { actions } = plan(group({}, { replicas }), observed([machine(0), machine(2)]), NOW);
    expect(summary(actions)).toEqual(['clone 1']);
  });

  test('a stable group has no actions and the same status on every reconcile', () => {
    const { status, actions } = plan(group({}, { replicas }), observed(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({
      phase: 'RUNNING',
      currentReplicas: 3,
      readyReplicas: 3,
      updatedReplicas: 3,
      lastMessage: 'successfully reconciled VmGroup',
    });
    expect(plan(group({}, status), observed(three), NOW + 60_000).status).toEqual(status);
  });
});

describe('updates', () => {
  test('a changed template replaces machines one at a time', () => {
    const found = observed(three, { templateId: DEBIAN, isTemplateFound: true });
    const { status, actions } = plan(group({ template: 'debian' }, { replicas }), found, NOW);
    expect(summary(actions)).toEqual(['remove 0']);
    expect(terminatingSlots(status)).toEqual([0]);
    const next = plan(group({ template: 'debian' }, status), found, NOW);
    expect(terminatingSlots(next.status)).toEqual([0]);
  });

  test('no machine is replaced while the new template is not found', () => {
    const { status, actions } = plan(group({ template: 'debain' }, { replicas }), observed(three), NOW);
    expect([actions, terminatingSlots(status)]).toEqual([[], []]);
    expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 3, updatedReplicas: 0 });
  });

  test('another inventory path of the same template does not replace machines', () => {
    const wanted = group({ template: '/DC0/vm/ubuntu' }, { replicas });
    const { status, actions } = plan(wanted, observed(three, { templateId: UBUNTU }), NOW);
    expect([actions, terminatingSlots(status)]).toEqual([[], []]);
    expect(status).toMatchObject({ phase: 'RUNNING', updatedReplicas: 3 });
  });

  test.each([
    [2, [0, 1]],
    ['50%', [0]],
    ['100%', [0, 1, 2]],
  ] as const)(
    'with maxUnavailable %s, a changed template replaces at most that many machines at a time',
    (maxUnavailable, expected) => {
      const wanted = group({ template: 'debian', update: { maxUnavailable } }, { replicas });
      expect(
        terminatingSlots(
          plan(wanted, observed(three, { templateId: DEBIAN, isTemplateFound: true }), NOW).status,
        ),
      ).toEqual(expected);
    },
  );

  test('a changed template replaces a machine that does not run, even if maxUnavailable is used up', () => {
    const machines = [machine(0), machine(1, { power: 'poweredOff' }), machine(2)];
    const found = observed(machines, { templateId: DEBIAN, isTemplateFound: true });
    const { status } = plan(group({ template: 'debian' }, { replicas }), found, NOW);
    expect(terminatingSlots(status)).toEqual([1]);
  });

  test('after vCenter has rejected the resize of a machine, the resize is not repeated, but the machine can be powered on or removed', () => {
    const wanted = group({ cpu: 64 }, { replicas });
    const resizeRejected = new Set([0]);
    expect(summary(plan(wanted, observed(three, { resizeRejected }), NOW).actions)).toEqual(['resize 1']);
    const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    expect(summary(plan(wanted, observed(off, { resizeRejected }), NOW).actions)).toEqual(['powerOn 0']);
    const fewer = plan(
      group({ cpu: 64, replicas: 0 }, { replicas }),
      observed(three, { resizeRejected }),
      NOW,
    );
    expect(summary(fewer.actions)).toContain('remove 0');
  });

  test('while clones back off, no machine is replaced', () => {
    const found = observed(three, { templateId: DEBIAN, isTemplateFound: true, areClonesBackingOff: true });
    expect(terminatingSlots(plan(group({ template: 'debian' }, { replicas }), found, NOW).status)).toEqual(
      [],
    );
  });

  test('a machine on a host that does not respond is not replaced', () => {
    const disconnected = [machine(0, { isConnected: false }), machine(1, { isConnected: false }), machine(2)];
    const wanted = group({ template: 'debian' }, { replicas });
    const isTemplateFound = { isTemplateFound: true, templateId: 'vm-debian' };
    expect(terminatingSlots(plan(wanted, observed(disconnected, isTemplateFound), NOW).status)).toEqual([]);
    expect(terminatingSlots(plan(wanted, observed(three, isTemplateFound), NOW).status)).toHaveLength(1);
  });

  test('with OnDelete, existing machines are neither updated nor replaced', () => {
    const wanted = group({ template: 'debian', cpu: 8, update: { strategy: 'OnDelete' } }, { replicas });
    const { status, actions } = plan(wanted, observed(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({ phase: 'RUNNING', updatedReplicas: 0 });
  });

  test('cpu and memory are hot-added if possible; otherwise they are changed with a restart, and only one machine restarts at a time', () => {
    const hot = { cpus: true, maxMemoryMb: 3_072 };
    const machines = [machine(0, { hotAdd: hot }), machine(1), machine(2)];
    const more = plan(group({ cpu: 4 }, { replicas }), observed(machines), NOW);
    expect(summary(more.actions)).toEqual(['reconfigure 0', 'resize 1']);
    // 3 GiB is exactly the hot-add limit.
    const most = plan(group({ memory: 3 }, { replicas }), observed(machines), NOW);
    expect(summary(most.actions)).toEqual(['reconfigure 0', 'resize 1']);
    // More memory than can be hot-added needs a restart.
    const beyond = plan(group({ memory: 4 }, { replicas }), observed(machines), NOW);
    expect(summary(beyond.actions)).toEqual(['resize 0']);
    const fewer = plan(group({ cpu: 1 }, { replicas }), observed(machines), NOW);
    expect(summary(fewer.actions)).toEqual(['resize 0']);
    const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    expect(summary(plan(group({ memory: 2 }, { replicas }), observed(off), NOW).actions)).toEqual([
      'resize 0',
    ]);
  });

  test('a suspended machine is resized even if maxUnavailable is used up', () => {
    const machines = [machine(0, { power: 'suspended' }), machine(1), machine(2)];
    expect(summary(plan(group({ cpu: 4 }, { replicas }), observed(machines), NOW).actions)).toEqual([
      'resize 0',
    ]);
  });

  test('a machine that is being resized counts as unavailable', () => {
    const operating = new Map<number, Operating>([[0, { type: 'resize' }]]);
    const { actions, status } = plan(group({ cpu: 4 }, { replicas }), observed(three, { operating }), NOW);
    expect(actions).toEqual([]);
    expect(status.readyReplicas).toBe(2);
  });
});

describe('shutdownSeconds', () => {
  const wanted = group({ replicas: 2, shutdownSeconds: 60 }, { replicas });
  const at = (shutdownAt: string) => ({
    replicas: [replica(0), replica(1), replica(2, { terminating: true, shutdownAt })],
  });

  test('with shutdownSeconds, a guest is asked to shut down before the removal, and the request time is stored', () => {
    const { status, actions } = plan(wanted, observed(three), NOW);
    expect(summary(actions)).toEqual(['shutDown 2']);
    expect(withAttempts(status, actions, NOW).replicas?.[2]).toMatchObject({
      terminating: true,
      shutdownAt: '2026-11-16T12:00:00.000Z',
    });
  });

  test('with shutdownSeconds, a machine is removed once it is off or its grace period has ended', () => {
    const asked = at(new Date(NOW - 20_000).toISOString());
    const waiting = plan({ ...wanted, status: asked }, observed(three), NOW);
    expect([summary(waiting.actions), waiting.requeueAfterMs]).toEqual([[], 40_000]);
    expect(summary(plan({ ...wanted, status: asked }, observed(three), NOW + 40_000).actions)).toEqual([
      'remove 2',
    ]);
    const off = [machine(0), machine(1), machine(2, { power: 'poweredOff' })];
    expect(summary(plan({ ...wanted, status: asked }, observed(off), NOW).actions)).toEqual(['remove 2']);
  });

  test('with shutdownSeconds, an ended grace period does not requeue the group while no removal can start', () => {
    const asked = at(new Date(NOW - 60_000).toISOString());
    const delayed = plan({ ...wanted, status: asked }, observed(three, { backingOff: new Set([2]) }), NOW);
    expect([summary(delayed.actions), delayed.requeueAfterMs]).toEqual([[], undefined]);
    const operating = new Map([[2, { type: 'remove' as const }]]);
    expect(plan({ ...wanted, status: asked }, observed(three, { operating }), NOW).requeueAfterMs).toBe(
      undefined,
    );
  });

  test('with shutdownSeconds, a running machine is not powered off when its shutdown is no longer needed', () => {
    const asked = {
      replicas: [replica(0, { shutdownAt: new Date(NOW).toISOString() }), replica(1), replica(2)],
    };
    const { status, actions } = plan(group({ shutdownSeconds: 60 }, asked), observed(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({ phase: 'RUNNING', readyReplicas: 3, replicas: [{ slot: 0 }, {}, {}] });
    expect(status.replicas?.[0]).not.toHaveProperty('shutdownAt');
  });

  test('with shutdownSeconds, a machine is removed immediately if the recorded time of its shutdown request is in the future', () => {
    const asked = at(new Date(NOW + 3_600_000).toISOString());
    expect(summary(plan({ ...wanted, status: asked }, observed(three), NOW).actions)).toEqual(['remove 2']);
  });

  test('with shutdownSeconds, a machine is unavailable once its guest is asked to shut down for a resize', () => {
    const bigger = group({ cpu: 4, shutdownSeconds: 60 }, { replicas });
    const { status, actions } = plan(bigger, observed(three), NOW);
    expect(summary(actions)).toEqual(['shutDown 0']);
    const next = plan({ ...bigger, status: withAttempts(status, actions, NOW) }, observed(three), NOW);
    expect([summary(next.actions), next.status.readyReplicas]).toEqual([[], 2]);
  });
});

test('a machine on a host that does not respond is not ready, and gets no action', () => {
  const machines = [machine(0, { isConnected: false, power: 'poweredOff' }), machine(1), machine(2)];
  const { status, actions } = plan(group({}, { replicas }), observed(machines), NOW);
  expect(actions).toEqual([]);
  expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 2 });
});

test('deletion removes every machine', () => {
  const { status, actions } = planDeletion(
    group({}, { replicas }),
    observed(three),
    'removing the machines',
    NOW,
  );
  expect(summary(actions)).toEqual(['remove 0', 'remove 1', 'remove 2']);
  expect(status).toMatchObject({
    phase: 'PENDING',
    lastMessage: 'removing the machines',
    currentReplicas: 3,
  });
  expect(terminatingSlots(status)).toEqual([0, 1, 2]);
});

describe('machines under the control of people', () => {
  const held = [machine(0, { isInFolder: false }), machine(1, { isTemplate: true, power: 'poweredOff' })];

  test('machines that people took over are not removed at scale-in; those outside the group folder are reported in slot order', () => {
    const machines = [machine(2, { isInFolder: false, name: 'c' }), ...held, machine(3)];
    const four = [...replicas, replica(3)];
    const { status, actions } = plan(group({ replicas: 0 }, { replicas: four }), observed(machines), NOW);
    expect(summary(actions)).toEqual(['remove 3']);
    expect(terminatingSlots(status)).toEqual([0, 1, 2, 3]);
    expect(status.lastMessage).toBe(
      `machines '${replicaName(group(), 0)}', 'c' are no longer in the group's folder; move them back, or delete them`,
    );
  });

  test('machines that people took over block the deletion', () => {
    const { status, actions } = planDeletion(
      group({}, { replicas }),
      observed(held),
      'removing the machines',
      NOW,
    );
    expect(actions).toEqual([]);
    expect(status.lastMessage).toMatch(/no longer in the group's folder/);
    const template = planDeletion(
      group({}, { replicas }),
      observed(held.slice(1)),
      'removing the machines',
      NOW,
    );
    expect(template.status.lastMessage).toBe(
      `machine '${replicaName(group(), 1)}' was turned into a template; convert it back to a virtual machine, or delete it`,
    );
  });

  test('machines that people took over are not replaced, and templates among them are not powered on', () => {
    const found = observed([...held, machine(2)], { templateId: DEBIAN, isTemplateFound: true });
    const update = { maxUnavailable: 3 };
    const { status } = plan(group({ template: 'debian', update }, { replicas }), found, NOW);
    expect(terminatingSlots(status)).toEqual([2]);
    expect(summary(plan(group({}, { replicas }), found, NOW).actions)).toEqual([]);
  });
});

describe('paused groups', () => {
  const paused = (spec: Partial<VmGroup['spec']>, status: VmGroupStatus) => {
    const wanted = group(spec, status);
    return { ...wanted, metadata: { ...wanted.metadata, annotations: { 'vmwright.dev/paused': 'true' } } };
  };
  const conditions = ({ conditions: all = [] }: VmGroupStatus) =>
    all.map(({ type, status }) => `${type}=${status}`);

  test('a paused group reports the observed machines and keeps its slots', () => {
    const slots = [replica(0), replica(1, { attempts: 1 }), replica(2, { attempts: 1, terminating: true })];
    const status = observePaused(paused({ replicas: 5 }, { replicas: slots }), observed([machine(0)]), NOW);
    expect(status).toMatchObject({
      phase: 'PENDING',
      currentReplicas: 1,
      desiredReplicas: 5,
      readyReplicas: 1,
      lastMessage: 'paused; 1 of 5 machines exist',
    });
    expect(status.replicas?.map(({ slot }) => slot)).toEqual([0, 1, 2]);
    expect(conditions(status)).toEqual([
      ...['Ready=False', 'Reconciling=True', 'Paused=True', 'VCenterAvailable=True'],
    ]);
  });

  test('a paused group is ready when its machines match the spec', () => {
    const status = observePaused(paused({}, { replicas }), observed(three), NOW);
    expect(conditions(status)).toEqual(['Ready=True', 'Paused=True', 'VCenterAvailable=True']);
    expect(conditions(plan(group({}, status), observed(three), NOW).status)).toEqual([
      ...['Ready=True', 'VCenterAvailable=True'],
    ]);
  });
});

test.each([
  [{ reason: 'Ambiguous', message: 'two' }, ['Ready=False', 'Stalled=True']],
  [{ reason: 'VcenterRefused', message: 'full', retryable: true }, ['Ready=False', 'Reconciling=True']],
  [{ reason: 'VcenterBusy', message: 'wait', isProgressing: true }, ['Ready=False', 'Reconciling=True']],
] as const)('the flags of an error determine the conditions: %o', (error, expected) => {
  const { status } = plan(group(), observed([], { areClonesBackingOff: true, errors: [error] }), NOW);
  expect(status.conditions?.map(({ type, status: value }) => `${type}=${value}`)).toEqual([
    ...expected,
    'VCenterAvailable=True',
  ]);
  expect(status.observedGeneration).toBe(3);
});

describe('requests to replace machines', () => {
  const asking = (
    request: string | undefined,
    status: VmGroupStatus,
    spec: Partial<VmGroup['spec']> = {},
  ) => {
    const annotations = request === undefined ? {} : { 'vmwright.dev/replace': request };
    const wanted = group(spec, status);
    return { ...wanted, metadata: { ...wanted.metadata, annotations } };
  };
  const found = (machines = three) => observed(machines, { isTemplateFound: true, templateId: UBUNTU });

  test('a request can list machines by name or slot; each of them is replaced once, one at a time', () => {
    const request = `${replicaName(group(), 2)}, 0`;
    const first = plan(asking(request, { replicas }), found(), NOW);
    expect(summary(first.actions)).toEqual(['remove 0']);
    expect(first.status.replacing).toEqual({ request, slots: [2] });
    // The machine of slot 0 has been replaced: the slot has a new machine with the same name.
    const repeated = { ...first.status, replicas };
    const second = plan(asking(request, repeated), found(), NOW);
    expect(terminatingSlots(second.status)).toEqual([2]);
    expect(second.status.replacing).toEqual({ request, slots: [] });
    const done = plan(asking(request, { ...second.status, replicas }), found(), NOW);
    expect([done.actions, terminatingSlots(done.status)]).toEqual([[], []]);
    const removed = plan(asking(undefined, { ...done.status, replicas }), found(), NOW);
    expect(removed.status).not.toHaveProperty('replacing');
    expect(
      terminatingSlots(plan(asking(request, { ...removed.status, replicas }), found(), NOW).status),
    ).toEqual([0]);
  });

  test('with OnDelete, a request to replace machines is executed once the template is found', () => {
    const update = { strategy: 'OnDelete' } as const;
    const waiting = plan(asking('1', { replicas }, { update }), observed(three), NOW);
    expect([waiting.actions, waiting.status.replacing]).toEqual([[], { request: '1', slots: [1] }]);
    const { actions } = plan(asking('1', waiting.status, { update }), found(), NOW);
    expect(summary(actions)).toEqual(['remove 1']);
  });

  test('a request to replace an unknown machine is reported once, and changes nothing', () => {
    const { status, actions, errors } = plan(asking('web-9', { replicas }), found(), NOW);
    expect(actions).toEqual([]);
    expect(errors).toEqual([
      {
        reason: 'UnknownMachine',
        message:
          "the annotation vmwright.dev/replace names 'web-9', but the group has no such machine; correct the annotation",
      },
    ]);
    expect(status.phase).toBe('RUNNING');
    expect(plan(asking('web-9', status), found(), NOW).errors).toEqual([]);
  });
});

describe('OnDelete', () => {
  const wanted = (status: VmGroupStatus) => group({ update: { strategy: 'OnDelete' } }, status);
  const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
  const running = [replica(0, { power: 'poweredOn' }), replica(1), replica(2)];

  test('with OnDelete, a machine that was powered off stays off for five minutes', () => {
    const first = plan(wanted({ replicas: running }), observed(off), NOW);
    expect([first.actions, first.requeueAfterMs]).toEqual([[], 300_000]);
    expect(first.status).toMatchObject({ readyReplicas: 2, replicas: [{ power: 'poweredOff' }, {}, {}] });
    const later = plan(wanted(first.status), observed(off), NOW + 299_000);
    expect([later.actions, later.requeueAfterMs]).toEqual([[], 1_000]);
    const over = plan(wanted(first.status), observed(off), NOW + 300_000);
    expect([summary(over.actions), over.requeueAfterMs]).toEqual([['powerOn 0'], undefined]);
    expect(plan(wanted(over.status), observed(three), NOW).status.replicas?.[0]).not.toHaveProperty(
      'offSince',
    );
  });

  test('with OnDelete, a machine is powered on immediately if it never ran or its offSince is in the future', () => {
    expect(summary(plan(wanted({ replicas }), observed(off), NOW).actions)).toEqual(['powerOn 0']);
    const future = [replica(0, { offSince: new Date(NOW + 3_600_000).toISOString() }), ...running.slice(1)];
    expect(summary(plan(wanted({ replicas: future }), observed(off), NOW).actions)).toEqual(['powerOn 0']);
  });
});

test('the status shows the new name of a renamed machine, and its replacement gets the original name', () => {
  const renamed = [machine(0, { name: 'database' }), machine(1), machine(2)];
  const { status } = plan(group({}, { replicas }), observed(renamed), NOW);
  expect(status).toMatchObject({ phase: 'RUNNING', replicas: [{ name: 'database' }, {}, {}] });
  const lost = plan(group({}, status), observed(renamed.slice(1)), NOW);
  expect(lost.actions).toMatchObject([{ type: 'clone', name: replicaName(group(), 0) }]);
});

test('the machines of a group with a long name get different names of at most 80 characters', () => {
  const long = { ...group(), metadata: { name: 'n'.repeat(253), namespace: 's', uid: UID } };
  const names = [0, 1, 2].map((slot) => replicaName(long, slot));
  expect(new Set(names).size).toBe(3);
  for (const name of names) expect(name).toMatch(/^n{54}-[a-z]{8}-replica-[a-z]{8}$/);
  expect(replicaName(group(), 0)).toMatch(/^web-replica-[a-z]{8}$/);
});
