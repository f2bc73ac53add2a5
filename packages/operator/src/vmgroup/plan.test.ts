import { describe, expect, test } from 'vitest';
import { instanceUuid, replicaName } from './names.ts';
import { attempting, observePaused, plan, planDeletion } from './plan.ts';
import type { Replica, VmGroup, VmGroupStatus } from './resource.ts';
import type { Action, Doing, Machine, Seen } from './slots.ts';

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
  const canAdd = { cpus: false, memoryUpToMb: 0 };
  return {
    ...{ slot, id: `vm-${slot}`, name: replicaName(group(), slot), power: 'poweredOn', isConnected: true },
    ...{ isInFolder: true, isTemplate: false },
    ...{ cpus: 2, memoryMb: 1_024, template: 'ubuntu', templateId: UBUNTU, canAdd },
    ...more,
  };
}

function replica(slot: number, more: Partial<Replica> = {}): Replica {
  const created = new Date(NOW + slot * 1_000).toISOString();
  return { slot, name: replicaName(group(), slot), instanceUuid: instanceUuid(UID, slot), created, ...more };
}

function seen(machines: readonly Machine[] = [], more: Partial<Seen> = {}): Seen {
  const none = {
    ...{ busy: new Map(), resting: new Set<number>(), inVain: new Set<number>() },
    ...{ gone: new Set<number>(), movedAway: new Map<number, string>() },
  };
  return { machines, ...none, isCloningAtRest: false, troubles: [], ...more };
}

const said = (actions: readonly Action[]) => actions.map(({ do: what, slot }) => `${what} ${slot}`);
const three = [machine(0), machine(1), machine(2)];
const replicas = [replica(0), replica(1), replica(2)];
const leavers = ({ replicas: all = [] }: VmGroupStatus) =>
  all.flatMap(({ slot, leaving }) => (leaving ? slot : []));

describe('scaling out', () => {
  test('a new group has its slots decided, and each is cloned', () => {
    const { status, actions } = plan(group(), seen(), NOW);
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
    const again = (actions: readonly Action[]) =>
      actions.map((action) => (action.do === 'clone' ? action.again : undefined));
    const first = plan(group({ replicas: 2 }), seen(), NOW);
    expect(again(first.actions)).toEqual([false, false]);
    expect(first.status.slotsUsed).toBe(2);
    const status = { ...first.status, replicas: [replica(0), replica(1, { attempts: 1 })] };
    const fewer = plan(group({ replicas: 1 }, status), seen([machine(0)], { gone: new Set([1]) }), NOW);
    expect(fewer.status).toMatchObject({ replicas: [{ slot: 0 }], slotsUsed: 2 });
    const more = plan(group({ replicas: 3 }, fewer.status), seen([machine(0)]), NOW);
    expect(said(more.actions)).toEqual(['clone 1', 'clone 2']);
    expect(again(more.actions)).toEqual([true, false]);
    const adopted = plan(group({ replicas: 1 }), seen([machine(0)]), NOW);
    expect(adopted.status.replicas?.[0]?.attempts).toBe(1);
  });

  test('the least free slots are taken, and none that is cloned already is cloned again', () => {
    const busy = new Map<number, Doing>([[2, { what: 'clone', task: 'task-7' }]]);
    const status = { replicas: [replica(0), replica(2)] };
    const next = plan(group({ replicas: 4 }, status), seen([machine(0)], { busy }), NOW);
    expect(said(next.actions)).toEqual(['clone 1', 'clone 3']);
    expect(next.status.replicas?.[2]).toMatchObject({ slot: 2, task: 'task-7' });
  });

  test('a machine that nobody knows of takes the place of one that would be made', () => {
    const next = plan(group({ replicas: 1 }), seen([machine(7)]), NOW);
    expect(said(next.actions)).toEqual([]);
    expect(next.status.replicas?.map(({ slot }) => slot)).toEqual([7]);
  });

  test('an attempt is counted, so that it is a write', () => {
    const { status, actions } = plan(group({ replicas: 1 }), seen(), NOW);
    expect(attempting(status, actions, NOW).replicas).toMatchObject([{ attempts: 1 }]);
    expect(attempting(status, [], NOW)).toEqual(status);
    const gone = plan(
      group({ replicas: 0 }, { replicas: [replica(0, { attempts: 1 })] }),
      seen([machine(0)]),
      NOW,
    );
    expect(attempting(gone.status, gone.actions, NOW).replicas).toMatchObject([
      { attempts: 2, leaving: true },
    ]);
  });

  test('after a failed clone none is tried until the group has rested', () => {
    const trouble = { reason: 'NoPermission', message: 'no' };
    const machines = [machine(0, { power: 'poweredOff' })];
    const atRest = seen(machines, { isCloningAtRest: true, troubles: [trouble] });
    const { status, actions } = plan(group({}, { replicas }), atRest, NOW);
    expect(said(actions)).toEqual(['powerOn 0']); // what else there is to do is done
    expect(status).toMatchObject({ phase: 'ERROR', lastMessage: 'no', currentReplicas: 1, readyReplicas: 0 });
  });
});

describe('scaling in', () => {
  test('those that do not run go first, then the newest, and are marked before they are removed', () => {
    const machines = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    const { status, actions } = plan(group({ replicas: 1 }, { replicas }), seen(machines), NOW);
    expect(leavers(status)).toEqual([0, 2]);
    expect(said(actions)).toEqual(['remove 0', 'remove 2']);
  });

  test.each([
    ['Newest', [1, 2]],
    ['Oldest', [0, 1]],
  ] as const)('%s', (scaleIn, expected) => {
    const machines = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    const wanted = group({ replicas: 1, scaleIn }, { replicas });
    expect(leavers(plan(wanted, seen(machines), NOW).status)).toEqual(expected);
  });

  test('one that is not there yet goes before any that is, without a trace', () => {
    const two = seen([machine(1), machine(2)]);
    const { status, actions } = plan(group({ replicas: 2 }, { replicas }), two, NOW);
    expect(status.replicas?.map(({ slot }) => slot)).toEqual([1, 2]);
    expect(actions).toEqual([]);
    expect(status.phase).toBe('RUNNING');
  });

  test('a slot whose machine does not show is kept until a lookup proves that it is gone', () => {
    const used = [replica(0, { attempts: 1 }), replica(1, { attempts: 1 }), replica(2, { attempts: 1 })];
    const two = [machine(1), machine(2)];
    const first = plan(group({ replicas: 2 }, { replicas: used }), seen(two), NOW);
    expect(said(first.actions)).toEqual(['lookUp 0']);
    expect(leavers(first.status)).toEqual([0]);
    expect(first.status).toMatchObject({ phase: 'PENDING', currentReplicas: 2 });
    const movedAway = new Map([[0, 'web-0']]);
    const resting = new Set([0]);
    const found = plan(group({ replicas: 2 }, first.status), seen(two, { movedAway, resting }), NOW);
    expect(found.actions).toEqual([]);
    expect(leavers(found.status)).toEqual([0]);
    expect(found.status).toMatchObject({
      phase: 'ERROR',
      lastMessage: "machine 'web-0' is no longer in the group's folder; move it back, or delete it",
    });
    const gone = plan(group({ replicas: 2 }, found.status), seen(two, { gone: new Set([0]) }), NOW);
    expect(gone.status).toMatchObject({ phase: 'RUNNING', replicas: [{ slot: 1 }, { slot: 2 }] });
  });

  test('scale to 0 removes every machine', () => {
    const { status, actions } = plan(group({ replicas: 0 }, { replicas }), seen(three), NOW);
    expect(said(actions)).toEqual(['remove 0', 'remove 1', 'remove 2']);
    expect(status.phase).toBe('PENDING');
    const gone = plan(group({ replicas: 0 }, status), seen(), NOW).status;
    expect(gone).toMatchObject({ phase: 'RUNNING', currentReplicas: 0, replicas: [] });
  });

  test('one that leaves does not come back: who is wanted again is another', () => {
    const leaving = [replica(0), replica(1), replica(2, { leaving: true })];
    const { actions, status } = plan(group({}, { replicas: leaving }), seen(three), NOW);
    expect(said(actions)).toEqual(['remove 2']);
    expect(status.replicas).toHaveLength(3);
    const after = plan(group({}, status), seen([machine(0), machine(1)]), NOW);
    expect(after.status.replicas?.map(({ slot, leaving: leaves }) => [slot, leaves])).toEqual([
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
    const { status, actions } = plan(group({}, { replicas }), seen(machines), NOW);
    expect(said(actions)).toEqual(['powerOn 0', 'powerOn 1']);
    expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 1, lastMessage: '1 of 3 machines run' });
  });

  test('what was deleted is made again, in its slot', () => {
    const { actions } = plan(group({}, { replicas }), seen([machine(0), machine(2)]), NOW);
    expect(said(actions)).toEqual(['clone 1']);
  });

  test('when all is as wanted, nothing is done and nothing is written twice', () => {
    const { status, actions } = plan(group({}, { replicas }), seen(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({
      ...{ phase: 'RUNNING', currentReplicas: 3, readyReplicas: 3, updatedReplicas: 3 },
      lastMessage: 'successfully reconciled VmGroup',
    });
    expect(plan(group({}, status), seen(three), NOW + 60_000).status).toEqual(status);
  });
});

describe('updates', () => {
  test('another template replaces machines, one at a time', () => {
    const found = seen(three, { templateId: DEBIAN, isTemplateThere: true });
    const { status, actions } = plan(group({ template: 'debian' }, { replicas }), found, NOW);
    expect(said(actions)).toEqual(['remove 0']);
    expect(leavers(status)).toEqual([0]);
    const again = plan(group({ template: 'debian' }, status), found, NOW);
    expect(leavers(again.status)).toEqual([0]);
  });

  test('one that is not found replaces none', () => {
    const { status, actions } = plan(group({ template: 'debain' }, { replicas }), seen(three), NOW);
    expect([actions, leavers(status)]).toEqual([[], []]);
    expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 3, updatedReplicas: 0 });
  });

  test('another name of the same one changes nothing', () => {
    const wanted = group({ template: '/DC0/vm/ubuntu' }, { replicas });
    const { status, actions } = plan(wanted, seen(three, { templateId: UBUNTU }), NOW);
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
      leavers(plan(wanted, seen(three, { templateId: DEBIAN, isTemplateThere: true }), NOW).status),
    ).toEqual(expected);
  });

  test('one that does not run is replaced without waiting for others', () => {
    const machines = [machine(0), machine(1, { power: 'poweredOff' }), machine(2)];
    const found = seen(machines, { templateId: DEBIAN, isTemplateThere: true });
    const { status } = plan(group({ template: 'debian' }, { replicas }), found, NOW);
    expect(leavers(status)).toEqual([1]);
  });

  test('one that vCenter does not let be what is wanted runs on, also where it was switched off', () => {
    const wanted = group({ cpu: 64 }, { replicas });
    const inVain = new Set([0]);
    expect(said(plan(wanted, seen(three, { inVain }), NOW).actions)).toEqual(['resize 1']);
    const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    expect(said(plan(wanted, seen(off, { inVain }), NOW).actions)).toEqual(['powerOn 0']);
    const fewer = plan(group({ cpu: 64, replicas: 0 }, { replicas }), seen(three, { inVain }), NOW);
    expect(said(fewer.actions)).toContain('remove 0');
  });

  test('while clones cannot be made, none is replaced', () => {
    const found = seen(three, { templateId: DEBIAN, isTemplateThere: true, isCloningAtRest: true });
    expect(leavers(plan(group({ template: 'debian' }, { replicas }), found, NOW).status)).toEqual([]);
  });

  test('one whose host does not respond is not replaced before it does', () => {
    const cut = [machine(0, { isConnected: false }), machine(1, { isConnected: false }), machine(2)];
    const wanted = group({ template: 'debian' }, { replicas });
    const isTemplateThere = { isTemplateThere: true, templateId: 'vm-debian' };
    expect(leavers(plan(wanted, seen(cut, isTemplateThere), NOW).status)).toEqual([]);
    expect(leavers(plan(wanted, seen(three, isTemplateThere), NOW).status)).toHaveLength(1);
  });

  test('OnDelete leaves what is there', () => {
    const wanted = group({ template: 'debian', cpu: 8, update: { strategy: 'OnDelete' } }, { replicas });
    const { status, actions } = plan(wanted, seen(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({ phase: 'RUNNING', updatedReplicas: 0 });
  });

  test('cpu and memory are changed in place: at once where they can be added, else by a restart, one at a time', () => {
    const hot = { cpus: true, memoryUpToMb: 3_072 };
    const machines = [machine(0, { canAdd: hot }), machine(1), machine(2)];
    const more = plan(group({ cpu: 4 }, { replicas }), seen(machines), NOW);
    expect(said(more.actions)).toEqual(['reconfigure 0', 'resize 1']);
    // Beyond what the machine can take while it runs, it is restarted.
    const most = plan(group({ memory: 3 }, { replicas }), seen(machines), NOW);
    expect(said(most.actions)).toEqual(['reconfigure 0', 'resize 1']);
    const beyond = plan(group({ memory: 4 }, { replicas }), seen(machines), NOW);
    expect(said(beyond.actions)).toEqual(['resize 0']);
    const fewer = plan(group({ cpu: 1 }, { replicas }), seen(machines), NOW);
    expect(said(fewer.actions)).toEqual(['resize 0']);
    const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
    expect(said(plan(group({ memory: 2 }, { replicas }), seen(off), NOW).actions)).toEqual(['resize 0']);
  });

  test('one that is suspended is resized whatever the others are: it is away already', () => {
    const machines = [machine(0, { power: 'suspended' }), machine(1), machine(2)];
    expect(said(plan(group({ cpu: 4 }, { replicas }), seen(machines), NOW).actions)).toEqual(['resize 0']);
  });

  test('one that is being restarted is away', () => {
    const busy = new Map<number, Doing>([[0, { what: 'resize' }]]);
    const { actions, status } = plan(group({ cpu: 4 }, { replicas }), seen(three, { busy }), NOW);
    expect(actions).toEqual([]);
    expect(status.readyReplicas).toBe(2);
  });
});

describe('guests that are given time to shut themselves down', () => {
  const wanted = group({ replicas: 2, shutdownSeconds: 60 }, { replicas });
  const at = (shutdownAt: string) => ({
    replicas: [replica(0), replica(1), replica(2, { leaving: true, shutdownAt })],
  });

  test('are asked first, and that is stored', () => {
    const { status, actions } = plan(wanted, seen(three), NOW);
    expect(said(actions)).toEqual(['shutDown 2']);
    expect(attempting(status, actions, NOW).replicas?.[2]).toMatchObject({
      leaving: true,
      shutdownAt: '2026-11-16T12:00:00.000Z',
    });
  });

  test('are waited for, and then taken away by the plug', () => {
    const asked = at(new Date(NOW - 20_000).toISOString());
    const waiting = plan({ ...wanted, status: asked }, seen(three), NOW);
    expect([said(waiting.actions), waiting.againMs]).toEqual([[], 40_000]);
    expect(said(plan({ ...wanted, status: asked }, seen(three), NOW + 40_000).actions)).toEqual(['remove 2']);
    const off = [machine(0), machine(1), machine(2, { power: 'poweredOff' })];
    expect(said(plan({ ...wanted, status: asked }, seen(off), NOW).actions)).toEqual(['remove 2']);
  });

  test('a deadline that has passed does not requeue: the removal waits for something else', () => {
    const asked = at(new Date(NOW - 60_000).toISOString());
    const waits = plan({ ...wanted, status: asked }, seen(three, { resting: new Set([2]) }), NOW);
    expect([said(waits.actions), waits.againMs]).toEqual([[], undefined]);
    const busy = new Map([[2, { what: 'remove' as const }]]);
    expect(plan({ ...wanted, status: asked }, seen(three, { busy }), NOW).againMs).toBe(undefined);
  });

  test('are left alone when they need not any more', () => {
    const asked = {
      replicas: [replica(0, { shutdownAt: new Date(NOW).toISOString() }), replica(1), replica(2)],
    };
    const { status, actions } = plan(group({ shutdownSeconds: 60 }, asked), seen(three), NOW);
    expect(actions).toEqual([]);
    expect(status).toMatchObject({ phase: 'RUNNING', readyReplicas: 3, replicas: [{ slot: 0 }, {}, {}] });
    expect(status.replicas?.[0]).not.toHaveProperty('shutdownAt');
  });

  test('are not waited for for ever when a clock was put back', () => {
    const asked = at(new Date(NOW + 3_600_000).toISOString());
    expect(said(plan({ ...wanted, status: asked }, seen(three), NOW).actions)).toEqual(['remove 2']);
  });

  test('are so before a restart, too, and are away meanwhile', () => {
    const bigger = group({ cpu: 4, shutdownSeconds: 60 }, { replicas });
    const { status, actions } = plan(bigger, seen(three), NOW);
    expect(said(actions)).toEqual(['shutDown 0']);
    const next = plan({ ...bigger, status: attempting(status, actions, NOW) }, seen(three), NOW);
    expect([said(next.actions), next.status.readyReplicas]).toEqual([[], 2]);
  });
});

test('a machine whose host does not respond does not run, and is left to who mends that', () => {
  const machines = [machine(0, { isConnected: false, power: 'poweredOff' }), machine(1), machine(2)];
  const { status, actions } = plan(group({}, { replicas }), seen(machines), NOW);
  expect(actions).toEqual([]);
  expect(status).toMatchObject({ phase: 'PENDING', readyReplicas: 2 });
});

test('a group that is being deleted wants none of its machines', () => {
  const { status, actions } = planDeletion(group({}, { replicas }), seen(three), 'it goes', NOW);
  expect(said(actions)).toEqual(['remove 0', 'remove 1', 'remove 2']);
  expect(status).toMatchObject({ phase: 'PENDING', lastMessage: 'it goes', currentReplicas: 3 });
  expect(leavers(status)).toEqual([0, 1, 2]);
});

describe('machines that people took over', () => {
  const held = [machine(0, { isInFolder: false }), machine(1, { isTemplate: true, power: 'poweredOff' })];

  test('are reported, all of them and in the order of their slots, and are not removed at scale-in', () => {
    const machines = [machine(2, { isInFolder: false, name: 'c' }), ...held, machine(3)];
    const four = [...replicas, replica(3)];
    const { status, actions } = plan(group({ replicas: 0 }, { replicas: four }), seen(machines), NOW);
    expect(said(actions)).toEqual(['remove 3']);
    expect(leavers(status)).toEqual([0, 1, 2, 3]);
    expect(status.lastMessage).toBe(
      `machines '${replicaName(group(), 0)}', 'c' are no longer in the group's folder; move them back, or delete them`,
    );
  });

  test('keep a deletion from finishing', () => {
    const { status, actions } = planDeletion(group({}, { replicas }), seen(held), 'it goes', NOW);
    expect(actions).toEqual([]);
    expect(status.lastMessage).toMatch(/no longer in the group's folder/);
    const template = planDeletion(group({}, { replicas }), seen(held.slice(1)), 'it goes', NOW);
    expect(template.status.lastMessage).toBe(
      `machine '${replicaName(group(), 1)}' was turned into a template; convert it back to a virtual machine, or delete it`,
    );
  });

  test('are neither switched on as templates nor replaced by an update', () => {
    const found = seen([...held, machine(2)], { templateId: DEBIAN, isTemplateThere: true });
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
    const leaving = [replica(0), replica(1, { attempts: 1 }), replica(2, { attempts: 1, leaving: true })];
    const status = observePaused(paused({ replicas: 5 }, { replicas: leaving }), seen([machine(0)]), NOW);
    expect(status).toMatchObject({
      ...{ phase: 'PENDING', currentReplicas: 1, desiredReplicas: 5, readyReplicas: 1 },
      lastMessage: 'paused; 1 of 5 machines exist',
    });
    expect(status.replicas?.map(({ slot }) => slot)).toEqual([0, 1, 2]);
    expect(conditions(status)).toEqual(['Ready=False', 'Reconciling=True', 'Paused=True']);
  });

  test('is ready where all is as wanted, and loses the condition when it is resumed', () => {
    const status = observePaused(paused({}, { replicas }), seen(three), NOW);
    expect(conditions(status)).toEqual(['Ready=True', 'Paused=True']);
    expect(conditions(plan(group({}, status), seen(three), NOW).status)).toEqual(['Ready=True']);
  });
});

test.each([
  [{ reason: 'Ambiguous', message: 'two' }, ['Ready=False', 'Stalled=True']],
  [{ reason: 'VcenterRefused', message: 'full', mayPass: true }, ['Ready=False', 'Reconciling=True']],
  [{ reason: 'VcenterBusy', message: 'wait', isPassing: true }, ['Ready=False', 'Reconciling=True']],
] as const)('the conditions of %o', (trouble, expected) => {
  const { status } = plan(group(), seen([], { isCloningAtRest: true, troubles: [trouble] }), NOW);
  expect(status.conditions?.map(({ type, status: is }) => `${type}=${is}`)).toEqual(expected);
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
  const found = (machines = three) => seen(machines, { isTemplateThere: true, templateId: UBUNTU });

  test('replaces them by name or slot, one at a time, and each once', () => {
    const request = `${replicaName(group(), 2)}, 0`;
    const first = plan(asking(request, { replicas }), found(), NOW);
    expect(said(first.actions)).toEqual(['remove 0']);
    expect(first.status.replacing).toEqual({ request, slots: [2] });
    // Slot 0 has a machine again, under the same name.
    const again = { ...first.status, replicas };
    const second = plan(asking(request, again), found(), NOW);
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
    const waiting = plan(asking('1', { replicas }, { update }), seen(three), NOW);
    expect([waiting.actions, waiting.status.replacing]).toEqual([[], { request: '1', slots: [1] }]);
    const { actions } = plan(asking('1', waiting.status, { update }), found(), NOW);
    expect(said(actions)).toEqual(['remove 1']);
  });

  test('for a machine that the group does not have is reported once, and changes nothing', () => {
    const { status, actions, troubles } = plan(asking('web-9', { replicas }), found(), NOW);
    expect(actions).toEqual([]);
    expect(troubles).toEqual([
      {
        reason: 'UnknownMachine',
        message: "the annotation vmwright.dev/replace names 'web-9', and the group has no such machine",
      },
    ]);
    expect(status.phase).toBe('RUNNING');
    expect(plan(asking('web-9', status), found(), NOW).troubles).toEqual([]);
  });
});

describe('with OnDelete, a machine that an administrator powered off', () => {
  const wanted = (status: VmGroupStatus) => group({ update: { strategy: 'OnDelete' } }, status);
  const off = [machine(0, { power: 'poweredOff' }), machine(1), machine(2)];
  const ran = [replica(0, { power: 'poweredOn' }), replica(1), replica(2)];

  test('is left off for five minutes, so that it can be deleted', () => {
    const first = plan(wanted({ replicas: ran }), seen(off), NOW);
    expect([first.actions, first.againMs]).toEqual([[], 300_000]);
    expect(first.status).toMatchObject({ readyReplicas: 2, replicas: [{ power: 'poweredOff' }, {}, {}] });
    const later = plan(wanted(first.status), seen(off), NOW + 299_000);
    expect([later.actions, later.againMs]).toEqual([[], 1_000]);
    const over = plan(wanted(first.status), seen(off), NOW + 300_000);
    expect([said(over.actions), over.againMs]).toEqual([['powerOn 0'], undefined]);
    expect(plan(wanted(over.status), seen(three), NOW).status.replicas?.[0]).not.toHaveProperty('offSince');
  });

  test('is powered on at once where it never ran, or the clock was put back', () => {
    expect(said(plan(wanted({ replicas }), seen(off), NOW).actions)).toEqual(['powerOn 0']);
    const future = [replica(0, { offSince: new Date(NOW + 3_600_000).toISOString() }), ...ran.slice(1)];
    expect(said(plan(wanted({ replicas: future }), seen(off), NOW).actions)).toEqual(['powerOn 0']);
  });
});

test('a renamed machine shows its present name, and one that is made again has the name of its slot', () => {
  const renamed = [machine(0, { name: 'database' }), machine(1), machine(2)];
  const { status } = plan(group({}, { replicas }), seen(renamed), NOW);
  expect(status).toMatchObject({ phase: 'RUNNING', replicas: [{ name: 'database' }, {}, {}] });
  const lost = plan(group({}, status), seen(renamed.slice(1)), NOW);
  expect(lost.actions).toMatchObject([{ do: 'clone', name: replicaName(group(), 0) }]);
});

test('names fit into vCenter, and differ', () => {
  const long = { ...group(), metadata: { name: 'n'.repeat(253), namespace: 's', uid: UID } };
  const names = [0, 1, 2].map((slot) => replicaName(long, slot));
  expect(new Set(names).size).toBe(3);
  for (const name of names) expect(name).toMatch(/^n{54}-[a-z]{8}-replica-[a-z]{8}$/);
  expect(replicaName(group(), 0)).toMatch(/^web-replica-[a-z]{8}$/);
});
