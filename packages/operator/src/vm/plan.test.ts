import type { Server } from '@vmwright/cloud';
import { conditionOf, schema } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import type { ConditionError } from './errors.ts';
import { isOutdated, plan, type Seen, type Step } from './plan.ts';
import { VM, type VMStatus } from './resource.ts';
import { observed, troubled } from './status.ts';

const RECREATE = { 'vmwright.dev/recreate': 'true' };
const NOW = Date.parse('2026-11-16T10:00:00Z');

function vm(status?: VMStatus, annotations?: Record<string, string>): VM {
  const metadata = {
    namespace: 'default',
    name: 'sample',
    uid: 'u-1',
    generation: 3,
    ...(annotations && { annotations }),
  };
  return { metadata, spec: { vmname: 'vmsample' }, ...(status && { status }) };
}

const labels = {
  'vmwright.dev/cluster': 'c-1',
  'vmwright.dev/uid': 'u-1',
  'vmwright.dev/namespace': 'default',
  'vmwright.dev/name': 'sample',
};
const running: Server = {
  id: 's-1',
  name: 'vmsample',
  labels,
  state: 'running',
  cpuUtilization: 42,
  createdAt: '2026-11-16T09:00:00Z',
};

const next = (object: VM, seen: Seen) => plan('c-1', NOW, object, seen);

function told(step: Step): VMStatus {
  if (step.do !== 'tell' && step.do !== 'intend') throw new Error(`the plan is to ${step.do}`);
  // Whatever is told must be what the kind's own schema takes.
  expect(schema.validate(VM.schema, { spec: { vmname: 'vmsample' }, status: step.status })).toEqual([]);
  return step.status;
}

const UNREACHABLE: ConditionError = {
  ...{ reason: 'CloudUnreachable', message: 'no answer', isOutage: true, isTransient: true },
};
const REJECTED: ConditionError = {
  ...{ reason: 'CloudRefused', message: 'no', isOutage: false, isTransient: false },
};
const ready = (status: VMStatus) => conditionOf(status.conditions, 'Ready');

describe('a new VM', () => {
  test('with an empty vmId, as the original controller writes it, has no machine yet', () => {
    expect(next(vm({ vmId: '' }), {})).toEqual({ do: 'check', name: 'vmsample' });
    expect(isOutdated(vm({ vmId: '', opStatus: 'New' }), new Map())).toBe(false);
    expect(told(next(vm({ vmId: '' }), { server: running }))).toMatchObject({ vmId: 's-1' });
    expect(told(next(vm({ vmId: '' }), { server: { gone: 's-0' } }))).toMatchObject({ vmId: 's-0' });
  });

  test('is created only after its name was checked and the intent is stored, with its UID as key', () => {
    expect(next(vm(), {})).toEqual({ do: 'check', name: 'vmsample' });
    const intent = next(vm(), { name: 'accepted' });
    expect(intent.do).toBe('intend');
    expect(told(intent)).toMatchObject({ opStatus: 'New', attempts: 1 });
    expect(next(vm(told(intent)), { name: 'accepted', intended: true })).toEqual({
      do: 'create',
      server: { name: 'vmsample', labels },
      key: 'u-1',
    });
  });

  test('stores another intent for each attempt, so that each is compared with what is stored', () => {
    const again = told(next(vm({ attempts: 4, opStatus: 'Failed', msg: 'no room' }), { name: 'accepted' }));
    expect(again).toMatchObject({ attempts: 5, opStatus: 'Failed', msg: 'no room' });
  });

  test('whose name is refused says so and is not created; it is looked at again in a while', () => {
    const message = 'the name vmsample is prohibited';
    const step = next(vm(), { name: { reason: 'Prohibited', message } });
    expect(step).toMatchObject({
      do: 'tell',
      againMs: 300_000,
      event: { type: 'Warning', reason: 'NameProhibited' },
    });
    const status = told(step);
    expect(status).toMatchObject({ opStatus: 'Failed', msg: message });
    expect(conditionOf(status.conditions, 'NameAccepted')).toMatchObject({
      status: 'False',
      reason: 'Prohibited',
      message,
    });
    expect(ready(status)).toMatchObject({ status: 'False', reason: 'NameProhibited', observedGeneration: 3 });
    const lifted = told(next(vm(status), { name: 'accepted' }));
    expect(conditionOf(lifted.conditions, 'NameAccepted')).toMatchObject({ status: 'True' });
  });
});

describe('a VM that has a machine', () => {
  test('is looked at, and told as it is', () => {
    expect(next(vm({ vmId: 's-1' }), {})).toEqual({ do: 'look', id: 's-1' });
    const status = told(next(vm({ vmId: 's-1' }), { server: running }));
    expect(status).toMatchObject({ vmId: 's-1', cpuUtilization: 42, opStatus: 'Running' });
    expect(ready(status)).toMatchObject({ status: 'True', reason: 'Running' });
  });

  test.each([
    ['building', 'New', 'False', 'Building'],
    ['failed', 'Failed', 'False', 'MachineFailed'],
    ['deleting', 'Unknown', 'False', 'MachineDeleting'],
  ] as const)('that is %s is %s, and has no utilization', (state, opStatus, status, reason) => {
    const seen = observed(vm({ vmId: 's-1', cpuUtilization: 7 }), { ...running, state }, NOW);
    expect(seen).toMatchObject({ opStatus });
    expect(seen.cpuUtilization).toBeUndefined();
    expect(ready(seen)).toMatchObject({ status, reason });
  });

  test('that the cloud has lost is not made anew unasked', () => {
    const step = next(vm({ vmId: 's-1', cpuUtilization: 7, opStatus: 'Running' }), {
      server: { gone: 's-1' },
      owned: 'none',
    });
    expect(step).toMatchObject({ do: 'tell', event: { type: 'Warning', reason: 'VmLost' } });
    const status = told(step);
    expect(status).toMatchObject({ vmId: 's-1', opStatus: 'Unknown' });
    expect(conditionOf(status.conditions, 'VmLost')?.message).toBe(
      'The cloud has no machine s-1 any more. Delete the VM, or annotate it with vmwright.dev/recreate=true to get a new machine',
    );
    // A cloud that was restored from a backup has it again.
    const back = told(next(vm(status), { server: running }));
    expect(conditionOf(back.conditions, 'VmLost')).toBeUndefined();
    expect(ready(back)?.status).toBe('True');
  });

  test('is made anew where that is asked for: under another key, once the old id is given up', () => {
    const step = next(vm({ vmId: 's-1', attempts: 1 }, RECREATE), { server: { gone: 's-1' }, owned: 'none' });
    expect(step).toMatchObject({
      do: 'tell',
      againMs: 0,
      event: { reason: 'Recreating', note: 'Machine s-1 is gone; creating a new one' },
    });
    const given = vm(told(step), RECREATE);
    expect(given.status?.vmId).toBeUndefined();
    expect(next(given, {})).toEqual({ do: 'check', name: 'vmsample' });
    expect(next(given, { name: 'accepted' }).do).toBe('intend');
    expect(next(given, { name: 'accepted', intended: true })).toMatchObject({ do: 'create', key: 'u-1.1' });
  });

  test('that could not be started is replaced where that is asked for, and else says what can be done', () => {
    const server: Server = { ...running, state: 'failed', message: 'no room' };
    expect(told(next(vm({ vmId: 's-1' }), { server })).msg).toBe(
      'The machine has failed (no room). Delete the VM, or annotate it with vmwright.dev/recreate=true to get a new machine',
    );
    const object = vm({ vmId: 's-1', attempts: 1 }, RECREATE);
    const another = {
      opStatus: 'Failed',
      msg: 'The machine has failed (no room). A new machine is created',
    } as const;
    const intent = next(object, { server });
    expect([intent.do, told(intent)]).toMatchObject(['intend', { ...another, attempts: 2 }]);
    expect(next(object, { server, intended: true })).toEqual({ do: 'remove', id: 's-1' });
    // What stood in the way stays told until it does not.
    const inTrouble = troubled(object, UNREACHABLE, NOW);
    expect(told(next(vm(inTrouble, RECREATE), { server }))).toEqual({ ...inTrouble, attempts: 2 });
    const done = { server, intended: true, removed: true };
    expect(told(next(vm(inTrouble, RECREATE), done))).toMatchObject(another);
    // One that was let go of is not ours to remove, and nothing else is promised.
    expect(
      told(next(vm({ vmId: 's-1' }, RECREATE), { server: { ...server, labels: {} }, owned: 'none' })).msg,
    ).toBe(
      'The machine has failed (no room). The operator does not remove it, because its label vmwright.dev/uid is gone: delete it in the cloud to get a new machine',
    );
  });

  test.each([
    ['the first', 0, 0],
    ['the second', 1, 10_000],
    ['the fourth', 3, 40_000],
    ['the hundredth', 99, 300_000],
  ])('waits ever longer for another: %s that is lost or fails', (_, recreations, pauseMs) => {
    const made = { vmId: 's-1', recreations, recreatedAt: new Date(NOW - 1_000).toISOString() };
    const object = vm(recreations === 0 ? { vmId: 's-1' } : made, RECREATE);
    const failed: Seen = { server: { ...running, state: 'failed', message: 'no room' } };
    const gone: Seen = { server: { gone: 's-1' }, owned: 'none' };
    if (pauseMs > 0) {
      const pause = `A new machine is created, at least ${pauseMs / 1_000} s after the last one`;
      const againMs = pauseMs - 1_000;
      expect(next(object, failed)).toMatchObject({ do: 'tell', againMs });
      expect(told(next(object, failed)).msg).toBe(`The machine has failed (no room). ${pause}`);
      expect(next(object, gone)).toMatchObject({ do: 'tell', againMs, status: { vmId: 's-1' } });
      expect(told(next(object, gone)).msg).toBe(`The cloud has no machine s-1 any more. ${pause}`);
    }
    for (const later of [NOW - 1_000 + pauseMs, NOW - 3_600_000]) {
      expect(plan('c-1', later, object, { ...failed, intended: true })).toEqual({ do: 'remove', id: 's-1' });
      const step = plan('c-1', later, object, gone);
      expect(step).toMatchObject({ do: 'tell', event: { reason: 'Recreating' }, againMs: 0 });
      expect(told(step)).toMatchObject({
        recreations: recreations + 1,
        recreatedAt: new Date(later).toISOString(),
      });
    }
  });

  test('whose marks are not ours any more gets them back', () => {
    const server: Server = { ...running, labels: { ...labels, 'vmwright.dev/cluster': 'old' } };
    const { 'vmwright.dev/uid': _, ...mended } = labels;
    expect(next(vm({ vmId: 's-1' }), { server })).toEqual({ do: 'mark', id: 's-1', labels: mended });
    // One that was let go of is not made ours again.
    expect(next(vm({ vmId: 's-1' }), { server: { ...running, labels: {} }, owned: 'none' }).do).toBe('tell');
  });

  test('has its name accepted, whatever was said of it before', () => {
    const refused = told(next(vm(), { name: { reason: 'Prohibited', message: 'no' } }));
    const status = told(next(vm(refused), { server: running }));
    expect(conditionOf(status.conditions, 'NameAccepted')).toMatchObject({ status: 'True' });
  });

  test('is not told as failed because the cloud does not answer us, or not any more', () => {
    const before = observed(vm(), running, NOW);
    for (const reason of ['CloudUnreachable', 'CloudBusy', 'CloudUnauthorized', 'CloudRefused'] as const) {
      const isOutage = reason !== 'CloudRefused';
      const error = { reason, message: 'it is so', isOutage, isTransient: false };
      const status = troubled(vm(before), error, NOW);
      expect(status).toMatchObject({ vmId: 's-1', opStatus: 'Unknown', msg: 'it is so' });
      // What is refused is tried again by itself, ever later.
      expect(isOutdated(vm(status), new Map([[running.id, running]]))).toBe(isOutage);
    }
    expect(troubled(vm(), REJECTED, NOW).opStatus).toBe('Failed');
  });

  test('of which not even the id is known is lost without one', () => {
    const status = told(next(vm({ attempts: 1 }), { server: { gone: undefined } }));
    expect(status.vmId).toBeUndefined();
    expect(status.msg).toContain('The cloud has no machine of this VM any more');
  });
});

describe('a VM that is paused', () => {
  const PAUSED = { 'vmwright.dev/paused': 'true' };

  test('is observed, and says that it is paused', () => {
    expect(next(vm({ vmId: 's-1' }, PAUSED), {})).toEqual({ do: 'look', id: 's-1' });
    const status = told(next(vm({ vmId: 's-1' }, PAUSED), { server: running }));
    expect(status).toMatchObject({ opStatus: 'Running', cpuUtilization: 42 });
    expect(conditionOf(status.conditions, 'Paused')).toMatchObject({
      status: 'True',
      message:
        'The operator observes the object and changes nothing; remove the annotation vmwright.dev/paused to resume',
    });
    const resumed = told(next(vm(status), { server: running }));
    expect(conditionOf(resumed.conditions, 'Paused')).toBeUndefined();
  });

  test('is not created, marked, removed or replaced', () => {
    expect(told(next(vm(undefined, PAUSED), {}))).toMatchObject({
      msg: 'No machine is created while the VM is paused',
    });
    const object = vm({ vmId: 's-1' }, { ...PAUSED, ...RECREATE });
    const foreign = { ...running, labels: { ...labels, 'vmwright.dev/cluster': 'old' } };
    for (const server of [foreign, { ...running, state: 'failed' } as const])
      expect(next(object, { server })).toMatchObject({ do: 'tell', status: { vmId: 's-1' } });
    const gone = next(object, { server: { gone: 's-1' }, owned: 'none' });
    expect(gone).toMatchObject({ do: 'tell', status: { vmId: 's-1' } });
    expect(ready(told(gone))?.reason).toBe('VmLost');
  });
});

describe('a vmId that does not name the machine of the VM', () => {
  const stolen: Server = { ...running, id: 's-2', labels: { ...labels, 'vmwright.dev/uid': 'u-2' } };
  const unlabelled: Server = { ...running, id: 's-3', labels: {} };

  test.each([
    ['a machine of another VM', stolen],
    ['a machine without an owner', unlabelled],
    ['a machine that does not exist', { gone: 's-4' }],
  ])('is corrected by the ownership label: %s', (_, server) => {
    const vmId = 'gone' in server ? server.gone : server.id;
    const object = vm({ vmId });
    expect(next(object, { server })).toEqual({ do: 'search', besides: vmId });
    const step = next(object, { server, owned: running });
    expect(step).toMatchObject({
      do: 'tell',
      againMs: 0,
      event: {
        type: 'Warning',
        reason: 'VmIdRepaired',
        note: `status.vmId named ${vmId}, which is not the machine of this VM; corrected to s-1`,
      },
    });
    expect(told(step)).toMatchObject({ vmId: 's-1', opStatus: 'Running', repairs: 1 });
  });

  test('does not show the state of a machine that is not its own, when there is none of its own', () => {
    const foreign: Server = { ...unlabelled, name: 'vmother' };
    expect(ready(told(next(vm({ vmId: 's-3' }), { server: foreign, owned: 'none' })))?.reason).toBe('VmLost');
    const status = told(next(vm({ vmId: 's-2' }), { server: stolen, owned: 'none' }));
    expect(ready(status)).toMatchObject({ status: 'False', reason: 'VmLost' });
    expect(status.cpuUtilization).toBeUndefined();
    expect(status.msg).toBe(
      'Machine s-2 is not a machine of this VM, and the cloud has none of it. Delete the VM, or annotate it with vmwright.dev/recreate=true to get a new machine',
    );
    expect(isOutdated(vm(status), new Map([[stolen.id, stolen]]))).toBe(false);
  });
});

describe('a list of the cloud', () => {
  const servers = (...all: readonly Server[]) => new Map(all.map((server) => [server.id, server]));
  const good = vm(observed(vm(), running, NOW));

  test('wakes a VM that is not as it shows, and no other', () => {
    expect(isOutdated(good, servers(running))).toBe(false);
    expect(isOutdated(good, servers({ ...running, cpuUtilization: 43 }))).toBe(true);
    expect(isOutdated(good, servers({ ...running, state: 'failed' }))).toBe(true);
    expect(isOutdated(good, servers())).toBe(true);
    expect(isOutdated(vm({ attempts: 1, opStatus: 'New' }), servers())).toBe(false);
  });

  test('does not wake again and again a VM that is known to be lost, unless it may be made anew', () => {
    const lost = told(next(good, { server: { gone: 's-1' }, owned: 'none' }));
    expect(isOutdated(vm(lost), servers())).toBe(false);
    expect(isOutdated(vm(lost, { 'vmwright.dev/recreate': 'true' }), servers())).toBe(true);
  });
});
