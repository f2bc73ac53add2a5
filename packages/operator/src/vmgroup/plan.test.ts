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
    ...{ slot, id: `vm-${slot}`, name: replicaName(group(), slot), power: 'poweredOn', isConnected: true },
    ...{ isInFolder: true, isTemplate: false },
    ...{ cpus: 2, memoryMb: 1_024, template: 'ubuntu', templateId: UBUNTU, hotAdd },
    ...more,
  };
}

function replica(slot: number, more: Partial<Replica> = {}): Replica {
  const created = new Date(NOW + slot * 1_000).toISOString();
  return { slot, name: replicaName(group(), slot), instanceUuid: instanceUuid(UID, slot), created, ...more };
}

function observed(machines: readonly Machine[] = [], more: Partial<Observed> = {}): Observed {
  const none = {
    ...{ operating: new Map(), backingOff: new Set<number>(), resizeRejected: new Set<number>() },
    ...{ gone: new Set<number>(), movedAway: new Map<number, string>() },
  };
  return { machines, ...none, areClonesBackingOff: false, errors: [], ...more };
}

const said = (actions: readonly Action[]) => actions.map(({ type: what, slot }) => `${what} ${slot}`);
const three = [machine(0), machine(1), machine(2)];
const replicas = [replica(0), replica(1), replica(2)];
const leavers = ({ replicas: all = [] }: VmGroupStatus) =>
  all.flatMap(({ slot, terminating }) => (terminating ? slot : []));

describe('scaling out', () => {
  test('a new group has its slots decided, and each is cloned', () => {
    const { status, actions } = plan(group(), observed(), NOW);
    expect(said(actions)).toEqual(['clone 0', 'clone 1', 'clone 2']);
    expect(status).toMatchObject({
      phase: 'PENDING',
      currentReplicas: 0,
      desiredReplicas: 3,
      readyReplicas: 0,
      lastMessage: '0 of 3 machines exist',
      replicas: [0, 1, 2].map((slot) => ({ slot, instanceUuid: instanceUuid(UID, slot) })),
    });
  });

  test('a slot that was used before, or whose machine nobody knew of, may have one somewhere', () => {
    const isRetry = (actions: readonly Action[]) =>
      actions.map((action) => (action.type === 'clone' ? action.isRetry : undefined));
    const first = plan(group({ replicas: 2 }), observed(), NOW);
    expect(isRetry(first.actions)).toEqual([false, false]);
    expect(first.status.slotsUsed).toBe(2);
    const status = { ...first.status, replicas: [replica(0), replica(1, { attempts: 1 })] };
    const fewer = plan(group({ replicas: 1 }, status), observed([machine(0)], { gone: new Set([1]) }), NOW);
    expect(fewer.status).toMatchObject({ replicas: [{ slot: 0 }], slotsUsed: 2 });
    const more = plan(group({ replicas: 3 }, fewer.status), observed([machine(0)]), NOW);
    expect(said(more.actions)).toEqual(['clone 1', 'clone 2']);
    expect(isRetry(more.actions)).toEqual([true, false]);
    const adopted = plan(group({ replicas: 1 }), observed([machine(0)]), NOW);
    expect(adopted.status.replicas?.[0]?.attempts).toBe(1);
  });

  test('the least free slots are taken, and none that is cloned already is cloned again', () => {
    const operating = new Map<number, Operating>([[2, { type: 'clone', task: 'task-7' }]]);
    const status = { replicas: [replica(0), replica(2)] };
    const next = plan(group({ replicas: 4 }, status), observed([machine(0)], { operating }), NOW);
    expect(said(next.actions)).toEqual(['clone 1', 'clone 3']);
    expect(next.status.replicas?.[2]).toMatchObject({ slot: 2, task: 'task-7' });
  });

  test('a machine that nobody knows of takes the place of one that would be made', () => {
    const next = plan(group({ replicas: 1 }), observed([machine(7)]), NOW);
    expect(said(next.actions)).toEqual([]);
    expect(next.status.replicas?.map(({ slot }) => slot)).toEqual([7]);
  });

  test('an attempt is counted, so that it is a write', () => {
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

  test('after a failed clone none is tried until the group has rested', () => {
    const trouble = { reason: 'NoPermission', message: 'no' };
    const machines = [machine(0, { power: 'poweredOff' })];
    const atRest = observed(machines, { areClonesBackingOff: true, errors: [trouble] });
    const { status, actions } = plan(group({}, { replicas }), atRest, NOW);
    expect(said(actions)).toEqual(['powerOn 0']); // what else there is to do is done
    expect(status).toMatchObject({ phase: 'ERROR', lastMessage: 'no', currentReplicas: 1, readyReplicas: 0 });
  });
});

describe('scaling in', () => {
  test('those that do not run go first, then the newest, and are marked before they are removed', () => {
    const machines = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    const { status, actions } = plan(group({ replicas: 1 }, { replicas }), observed(machines), NOW);
    expect(leavers(status)).toEqual([0, 2]);
    expect(said(actions)).toEqual(['remove 0', 'remove 2']);
  });

  test.each([
    ['Newest', [1, 2]],
    ['Oldest', [0, 1]],
  ] as const)('%s', (scaleIn, expected) => {
    const machines = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    const wanted = group({ replicas: 1, scaleIn }, { replicas });
    expect(leavers(plan(wanted, observed(machines), NOW).status)).toEqual(expected);
  });

  test('one that is not there yet goes before any that is, without a trace', () => {
    const two = observed([machine(1), machine(2)]);
    const { status, actions } = plan(group({ replicas: 2 }, { replicas }), two, NOW);
    expect(status.replicas?.map(({ slot }) => slot)).toEqual([1, 2]);
    expect(actions).toEqual([]);
    expect(status.phase).toBe('RUNNING');
  });

  test('a slot whose machine does not show is kept until a lookup proves that it is gone', () => {
    const used = [replica(0, { attempts: 1 }), replica(1, { attempts: 1 }), replica(2, { attempts: 1 })];
    const two = [machine(1), machine(2)];
    const first = plan(group({ replicas: 2 }, { replicas: used }), observed(two), NOW);
    expect(said(first.actions)).toEqual(['lookUp 0']);
    expect(leavers(first.status)).toEqual([0]);
    expect(first.status).toMatchObject({ phase: 'PENDING', currentReplicas: 2 });
    const movedAway = new Map([[0, 'web-0']]);
    const backingOff = new Set([0]);
    const found = plan(group({ replicas: 2 }, first.status), observed(two, { movedAway, backingOff }), NOW);
    expect(found.actions).toEqual([]);
    expect(leavers(found.status)).toEqual([0]);
    expect(found.status).toMatchObject({
      phase: 'ERROR',
      lastMessage: "machine 'web-0' is no longer in the group's folder; move it back, or delete it",
    });
    const gone = plan(group({ replicas: 2 }, found.status), observed(two, { gone: new Set([0]) }), NOW);
    expect(gone.status).toMatchObject({ phase: 'RUNNING', replicas: [{ slot: 1 }, { slot: 2 }] });
  });

  test('scale to 0 removes every machine', () => {
    const { status, actions } = plan(group({ replicas: 0 }, { replicas }), observed(three), NOW);
    expect(said(actions)).toEqual(['remove 0', 'remove 1', 'remove 2']);
    expect(status.phase).toBe('PENDING');
    const gone = plan(group({ replicas: 0 }, status), observed(), NOW).status;
    expect(gone).toMatchObject({ phase: 'RUNNING', currentReplicas: 0, replicas: [] });
  });

  test('one that leaves does not come back: who is wanted again is another', () => {
    const leaving = [replica(0), replica(1), replica(2, { terminating: true })];
    const { actions, status } = plan(group({}, { replicas: leaving }), observed(three), NOW);
    expect(said(actions)).toEqual(['remove 2']);
    expect(status.replicas).toHaveLength(3);
    const after = plan(group({}, status), observed([machine(0), machine(1)]), NOW);
    expect(after.status.replicas?.map(({ slot, terminating: leaves }) => [slot, leaves])).toEqual([
      [0, undefined],
      [1, undefined],
      [3, undefined],
    ]);
    expect(said(after.actions)).toEqual(['clone 3']);
  });
});

describe('drift', () => {
  test('what was switched off is switched on, what was suspended too', () => {
    const machines = [machine(0, { power: 'poweredOff' }), machine(1, { power: 'suspended' }), machine(2)];
    const { status, actions } = plan(group({}, { replicas }), observed(machines), NOW);
    expect(said(actions)).toEqual(['powerOn 0', 'powerOn 1']);
    expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 1, lastMessage: '1 of 3 machines run' });
  });

  test('what was deleted is made again, in its slot', () => {
    const { actions } = plan(group({}, { replicas }), observed([machine(0), machine(2)]), NOW);
    expect(said(actions)).toEqual(['clone 1']);
  });

  test('when all is as wanted, nothing is done and nothing is written twice', () => {
    const { status, actions } = plan(group({}, { replicas }), observed(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({
      ...{ phase: 'RUNNING', currentReplicas: 3, readyReplicas: 3, updatedReplicas: 3 },
      lastMessage: 'successfully reconciled VmGroup',
    });
    expect(plan(group({}, status), observed(three), NOW + 60_000).status).toEqual(status);
  });
});

describe('updates', () => {
  test('another template replaces machines, one at a time', () => {
    const found = observed(three, { templateId: DEBIAN, isTemplateFound: true });
    const { status, actions } = plan(group({ template: 'debian' }, { replicas }), found, NOW);
    expect(said(actions)).toEqual(['remove 0']);
    expect(leavers(status)).toEqual([0]);
    const next = plan(group({ template: 'debian' }, status), found, NOW);
    expect(leavers(next.status)).toEqual([0]);
  });

  test('one that is not found replaces none', () => {
    const { status, actions } = plan(group({ template: 'debain' }, { replicas }), observed(three), NOW);
    expect([actions, leavers(status)]).toEqual([[], []]);
    expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 3, updatedReplicas: 0 });
  });

  test('another name of the same one changes nothing', () => {
    const wanted = group({ template: '/DC0/vm/ubuntu' }, { replicas });
    const { status, actions } = plan(wanted, observed(three, { templateId: UBUNTU }), NOW);
    expect([actions, leavers(status)]).toEqual([[], []]);
    expect(status).toMatchObject({ phase: 'RUNNING', updatedReplicas: 3 });
  });

  test.each([
    [2, [0, 1]],
    ['50%', [0]],
    ['100%', [0, 1, 2]],
  ] as const)('or as many at a time as may be away: %s', (maxUnavailable, expected) => {
    const wanted = group({ template: 'debian', update: { maxUnavailable } }, { replicas });
    expect(
      leavers(plan(wanted, observed(three, { templateId: DEBIAN, isTemplateFound: true }), NOW).status),
    ).toEqual(expected);
  });

  test('one that does not run is replaced without waiting for others', () => {
    const machines = [machine(0), machine(1, { power: 'poweredOff' }), machine(2)];
    const found = observed(machines, { templateId: DEBIAN, isTemplateFound: true });
    const { status } = plan(group({ template: 'debian' }, { replicas }), found, NOW);
    expect(leavers(status)).toEqual([1]);
  });

  test('one that vCenter does not let be what is wanted runs on, also where it was switched off', () => {
    const wanted = group({ cpu: 64 }, { replicas });
    const resizeRejected = new Set([0]);
    expect(said(plan(wanted, observed(three, { resizeRejected }), NOW).actions)).toEqual(['resize 1']);
    const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    expect(said(plan(wanted, observed(off, { resizeRejected }), NOW).actions)).toEqual(['powerOn 0']);
    const fewer = plan(
      group({ cpu: 64, replicas: 0 }, { replicas }),
      observed(three, { resizeRejected }),
      NOW,
    );
    expect(said(fewer.actions)).toContain('remove 0');
  });

  test('while clones cannot be made, none is replaced', () => {
    const found = observed(three, { templateId: DEBIAN, isTemplateFound: true, areClonesBackingOff: true });
    expect(leavers(plan(group({ template: 'debian' }, { replicas }), found, NOW).status)).toEqual([]);
  });

  test('one whose host does not respond is not replaced before it does', () => {
    const cut = [machine(0, { isConnected: false }), machine(1, { isConnected: false }), machine(2)];
    const wanted = group({ template: 'debian' }, { replicas });
    const isTemplateFound = { isTemplateFound: true, templateId: 'vm-debian' };
    expect(leavers(plan(wanted, observed(cut, isTemplateFound), NOW).status)).toEqual([]);
    expect(leavers(plan(wanted, observed(three, isTemplateFound), NOW).status)).toHaveLength(1);
  });

  test('OnDelete leaves what is there', () => {
    const wanted = group({ template: 'debian', cpu: 8, update: { strategy: 'OnDelete' } }, { replicas });
    const { status, actions } = plan(wanted, observed(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({ phase: 'RUNNING', updatedReplicas: 0 });
  });

  test('cpu and memory are changed in place: at once where they can be added, else by a restart, one at a time', () => {
    const hot = { cpus: true, maxMemoryMb: 3_072 };
    const machines = [machine(0, { hotAdd: hot }), machine(1), machine(2)];
    const more = plan(group({ cpu: 4 }, { replicas }), observed(machines), NOW);
    expect(said(more.actions)).toEqual(['reconfigure 0', 'resize 1']);
    // Beyond what the machine can take while it runs, it is restarted.
    const most = plan(group({ memory: 3 }, { replicas }), observed(machines), NOW);
    expect(said(most.actions)).toEqual(['reconfigure 0', 'resize 1']);
    const beyond = plan(group({ memory: 4 }, { replicas }), observed(machines), NOW);
    expect(said(beyond.actions)).toEqual(['resize 0']);
    const fewer = plan(group({ cpu: 1 }, { replicas }), observed(machines), NOW);
    expect(said(fewer.actions)).toEqual(['resize 0']);
    const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    expect(said(plan(group({ memory: 2 }, { replicas }), observed(off), NOW).actions)).toEqual(['resize 0']);
  });

  test('one that is suspended is resized whatever the others are: it is away already', () => {
    const machines = [machine(0, { power: 'suspended' }), machine(1), machine(2)];
    expect(said(plan(group({ cpu: 4 }, { replicas }), observed(machines), NOW).actions)).toEqual([
      'resize 0',
    ]);
  });

  test('one that is being restarted is away', () => {
    const operating = new Map<number, Operating>([[0, { type: 'resize' }]]);
    const { actions, status } = plan(group({ cpu: 4 }, { replicas }), observed(three, { operating }), NOW);
    expect(actions).toEqual([]);
    expect(status.readyReplicas).toBe(2);
  });
});

describe('guests that are given time to shut themselves down', () => {
  const wanted = group({ replicas: 2, shutdownSeconds: 60 }, { replicas });
  const at = (shutdownAt: string) => ({
    replicas: [replica(0), replica(1), replica(2, { terminating: true, shutdownAt })],
  });

  test('are asked first, and that is stored', () => {
    const { status, actions } = plan(wanted, observed(three), NOW);
    expect(said(actions)).toEqual(['shutDown 2']);
    expect(withAttempts(status, actions, NOW).replicas?.[2]).toMatchObject({
      terminating: true,
      shutdownAt: '2026-11-16T12:00:00.000Z',
    });
  });

  test('are waited for, and then taken away by the plug', () => {
    const asked = at(new Date(NOW - 20_000).toISOString());
    const waiting = plan({ ...wanted, status: asked }, observed(three), NOW);
    expect([said(waiting.actions), waiting.requeueAfterMs]).toEqual([[], 40_000]);
    expect(said(plan({ ...wanted, status: asked }, observed(three), NOW + 40_000).actions)).toEqual([
      'remove 2',
    ]);
    const off = [machine(0), machine(1), machine(2, { power: 'poweredOff' })];
    expect(said(plan({ ...wanted, status: asked }, observed(off), NOW).actions)).toEqual(['remove 2']);
  });

  test('a deadline that has passed does not requeue: the removal waits for something else', () => {
    const asked = at(new Date(NOW - 60_000).toISOString());
    const waits = plan({ ...wanted, status: asked }, observed(three, { backingOff: new Set([2]) }), NOW);
    expect([said(waits.actions), waits.requeueAfterMs]).toEqual([[], undefined]);
    const operating = new Map([[2, { type: 'remove' as const }]]);
    expect(plan({ ...wanted, status: asked }, observed(three, { operating }), NOW).requeueAfterMs).toBe(
      undefined,
    );
  });

  test('are left alone when they need not any more', () => {
    const asked = {
      replicas: [replica(0, { shutdownAt: new Date(NOW).toISOString() }), replica(1), replica(2)],
    };
    const { status, actions } = plan(group({ shutdownSeconds: 60 }, asked), observed(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({ phase: 'RUNNING', readyReplicas: 3, replicas: [{ slot: 0 }, {}, {}] });
    expect(status.replicas?.[0]).not.toHaveProperty('shutdownAt');
  });

  test('are not waited for for ever when a clock was put back', () => {
    const asked = at(new Date(NOW + 3_600_000).toISOString());
    expect(said(plan({ ...wanted, status: asked }, observed(three), NOW).actions)).toEqual(['remove 2']);
  });

  test('are so before a restart, too, and are away meanwhile', () => {
    const bigger = group({ cpu: 4, shutdownSeconds: 60 }, { replicas });
    const { status, actions } = plan(bigger, observed(three), NOW);
    expect(said(actions)).toEqual(['shutDown 0']);
    const next = plan({ ...bigger, status: withAttempts(status, actions, NOW) }, observed(three), NOW);
    expect([said(next.actions), next.status.readyReplicas]).toEqual([[], 2]);
  });
});

test('a machine whose host does not respond does not run, and is left to who mends that', () => {
  const machines = [machine(0, { isConnected: false, power: 'poweredOff' }), machine(1), machine(2)];
  const { status, actions } = plan(group({}, { replicas }), observed(machines), NOW);
  expect(actions).toEqual([]);
  expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 2 });
});

test('a group that is being deleted wants none of its machines', () => {
  const { status, actions } = planDeletion(group({}, { replicas }), observed(three), 'it goes', NOW);
  expect(said(actions)).toEqual(['remove 0', 'remove 1', 'remove 2']);
  expect(status).toMatchObject({ phase: 'PENDING', lastMessage: 'it goes', currentReplicas: 3 });
  expect(leavers(status)).toEqual([0, 1, 2]);
});

describe('machines that people took over', () => {
  const held = [machine(0, { isInFolder: false }), machine(1, { isTemplate: true, power: 'poweredOff' })];

  test('are reported, all of them and in the order of their slots, and are not removed at scale-in', () => {
    const machines = [machine(2, { isInFolder: false, name: 'c' }), ...held, machine(3)];
    const four = [...replicas, replica(3)];
    const { status, actions } = plan(group({ replicas: 0 }, { replicas: four }), observed(machines), NOW);
    expect(said(actions)).toEqual(['remove 3']);
    expect(leavers(status)).toEqual([0, 1, 2, 3]);
    expect(status.lastMessage).toBe(
      `machines '${replicaName(group(), 0)}', 'c' are no longer in the group's folder; move them back, or delete them`,
    );
  });

  test('keep a deletion from finishing', () => {
    const { status, actions } = planDeletion(group({}, { replicas }), observed(held), 'it goes', NOW);
    expect(actions).toEqual([]);
    expect(status.lastMessage).toMatch(/no longer in the group's folder/);
    const template = planDeletion(group({}, { replicas }), observed(held.slice(1)), 'it goes', NOW);
    expect(template.status.lastMessage).toBe(
      `machine '${replicaName(group(), 1)}' was turned into a template; convert it back to a virtual machine, or delete it`,
    );
  });

  test('are neither switched on as templates nor replaced by an update', () => {
    const found = observed([...held, machine(2)], { templateId: DEBIAN, isTemplateFound: true });
    const update = { maxUnavailable: 3 };
    const { status } = plan(group({ template: 'debian', update }, { replicas }), found, NOW);
    expect(leavers(status)).toEqual([2]);
    expect(said(plan(group({}, { replicas }), found, NOW).actions)).toEqual([]);
  });
});

describe('a paused group', () => {
  const paused = (spec: Partial<VmGroup['spec']>, status: VmGroupStatus) => {
    const wanted = group(spec, status);
    return { ...wanted, metadata: { ...wanted.metadata, annotations: { 'vmwright.dev/paused': 'true' } } };
  };
  const conditions = ({ conditions: all = [] }: VmGroupStatus) =>
    all.map(({ type, status }) => `${type}=${status}`);

  test('reports what there is, and keeps its slots', () => {
    const leaving = [replica(0), replica(1, { attempts: 1 }), replica(2, { attempts: 1, terminating: true })];
    const status = observePaused(paused({ replicas: 5 }, { replicas: leaving }), observed([machine(0)]), NOW);
    expect(status).toMatchObject({
      ...{ phase: 'PENDING', currentReplicas: 1, desiredReplicas: 5, readyReplicas: 1 },
      lastMessage: 'paused; 1 of 5 machines exist',
    });
    expect(status.replicas?.map(({ slot }) => slot)).toEqual([0, 1, 2]);
    expect(conditions(status)).toEqual([
      ...['Ready=False', 'Reconciling=True', 'Paused=True', 'VCenterAvailable=True'],
    ]);
  });

  test('is ready where all is as wanted, and loses the condition when it is resumed', () => {
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
] as const)('the conditions of %o', (error, expected) => {
  const { status } = plan(group(), observed([], { areClonesBackingOff: true, errors: [error] }), NOW);
  expect(status.conditions?.map(({ type, status: is }) => `${type}=${is}`)).toEqual([
    ...expected,
    'VCenterAvailable=True',
  ]);
  expect(status.observedGeneration).toBe(3);
});

describe('a request to replace machines', () => {
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

  test('replaces them by name or slot, one at a time, and each once', () => {
    const request = `${replicaName(group(), 2)}, 0`;
    const first = plan(asking(request, { replicas }), found(), NOW);
    expect(said(first.actions)).toEqual(['remove 0']);
    expect(first.status.replacing).toEqual({ request, slots: [2] });
    // Slot 0 has a machine again, under the same name.
    const repeated = { ...first.status, replicas };
    const second = plan(asking(request, repeated), found(), NOW);
    expect(leavers(second.status)).toEqual([2]);
    expect(second.status.replacing).toEqual({ request, slots: [] });
    const done = plan(asking(request, { ...second.status, replicas }), found(), NOW);
    expect([done.actions, leavers(done.status)]).toEqual([[], []]);
    const removed = plan(asking(undefined, { ...done.status, replicas }), found(), NOW);
    expect(removed.status).not.toHaveProperty('replacing');
    expect(leavers(plan(asking(request, { ...removed.status, replicas }), found(), NOW).status)).toEqual([0]);
  });

  test('works with OnDelete too, and waits for the template', () => {
    const update = { strategy: 'OnDelete' } as const;
    const waiting = plan(asking('1', { replicas }, { update }), observed(three), NOW);
    expect([waiting.actions, waiting.status.replacing]).toEqual([[], { request: '1', slots: [1] }]);
    const { actions } = plan(asking('1', waiting.status, { update }), found(), NOW);
    expect(said(actions)).toEqual(['remove 1']);
  });

  test('for a machine that the group does not have is reported once, and changes nothing', () => {
    const { status, actions, errors } = plan(asking('web-9', { replicas }), found(), NOW);
    expect(actions).toEqual([]);
    expect(errors).toEqual([
      {
        reason: 'UnknownMachine',
        message: "the annotation vmwright.dev/replace names 'web-9', and the group has no such machine",
      },
    ]);
    expect(status.phase).toBe('RUNNING');
    expect(plan(asking('web-9', status), found(), NOW).errors).toEqual([]);
  });
});

describe('with OnDelete, a machine that an administrator powered off', () => {
  const wanted = (status: VmGroupStatus) => group({ update: { strategy: 'OnDelete' } }, status);
  const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
  const ran = [replica(0, { power: 'poweredOn' }), replica(1), replica(2)];

  test('is left off for five minutes, so that it can be deleted', () => {
    const first = plan(wanted({ replicas: ran }), observed(off), NOW);
    expect([first.actions, first.requeueAfterMs]).toEqual([[], 300_000]);
    expect(first.status).toMatchObject({ readyReplicas: 2, replicas: [{ power: 'poweredOff' }, {}, {}] });
    const later = plan(wanted(first.status), observed(off), NOW + 299_000);
    expect([later.actions, later.requeueAfterMs]).toEqual([[], 1_000]);
    const over = plan(wanted(first.status), observed(off), NOW + 300_000);
    expect([said(over.actions), over.requeueAfterMs]).toEqual([['powerOn 0'], undefined]);
    expect(plan(wanted(over.status), observed(three), NOW).status.replicas?.[0]).not.toHaveProperty(
      'offSince',
    );
  });

  test('is powered on at once where it never ran, or the clock was put back', () => {
    expect(said(plan(wanted({ replicas }), observed(off), NOW).actions)).toEqual(['powerOn 0']);
    const future = [replica(0, { offSince: new Date(NOW + 3_600_000).toISOString() }), ...ran.slice(1)];
    expect(said(plan(wanted({ replicas: future }), observed(off), NOW).actions)).toEqual(['powerOn 0']);
  });
});

test('a renamed machine shows its present name, and one that is made again has the name of its slot', () => {
  const renamed = [machine(0, { name: 'database' }), machine(1), machine(2)];
  const { status } = plan(group({}, { replicas }), observed(renamed), NOW);
  expect(status).toMatchObject({ phase: 'RUNNING', replicas: [{ name: 'database' }, {}, {}] });
  const lost = plan(group({}, status), observed(renamed.slice(1)), NOW);
  expect(lost.actions).toMatchObject([{ type: 'clone', name: replicaName(group(), 0) }]);
});

test('names fit into vCenter, and differ', () => {
  const long = { ...group(), metadata: { name: 'n'.repeat(253), namespace: 's', uid: UID } };
  const names = [0, 1, 2].map((slot) => replicaName(long, slot));
  expect(new Set(names).size).toBe(3);
  for (const name of names) expect(name).toMatch(/^n{54}-[a-z]{8}-replica-[a-z]{8}$/);
  expect(replicaName(group(), 0)).toMatch(/^web-replica-[a-z]{8}$/);
});
