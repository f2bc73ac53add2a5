import type { Server } from '@vmwright/cloud';
import { conditionOf, isTrue, schema } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import type { ConditionError } from './errors.ts';
import type { Observed } from './observe.ts';
import { type Action, isOutdated, type Plan, plan } from './plan.ts';
import { VM, type VMStatus } from './resource.ts';
import { deletingStatus, errorStatus, machineStatus } from './status.ts';

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

type Seen = Omit<Observed, 'cluster'>;
const next = (object: VM, seen: Seen, now = NOW) => plan(object, { cluster: 'c-1', ...seen }, now);

/** Returns the only action of the plan, and checks that the plan does not change the status. */
function lookup(object: VM, seen: Seen): Action | undefined {
  const { status, actions, ...rest } = next(object, seen);
  expect(actions).toHaveLength(1);
  expect(status).toEqual(object.status ?? {});
  expect(rest).toEqual({});
  return actions[0];
}

/** Returns the only action of the plan, and checks that the status counts exactly one more attempt. */
function attempt(object: VM, seen: Seen, now = NOW): Action | undefined {
  const { status, actions, ...rest } = next(object, seen, now);
  expect(actions).toHaveLength(1);
  expect(valid(status).attempts).toBe((object.status?.attempts ?? 0) + 1);
  expect(rest).toEqual({});
  return actions[0];
}

/** Returns the status of the plan, and checks that the plan ends the reconcile. */
function ended({ status, actions }: Plan): VMStatus {
  expect(actions).toEqual([]);
  return valid(status);
}

/** Returns the status, and checks that it matches the schema of the kind. */
function valid(status: VMStatus): VMStatus {
  expect(schema.validate(VM.schema, { spec: { vmname: 'vmsample' }, status })).toEqual([]);
  return status;
}

const UNREACHABLE: ConditionError = {
  reason: 'CloudUnreachable',
  message: 'no answer',
  isOutage: true,
  isTransient: true,
};
const REJECTED: ConditionError = {
  reason: 'CloudRefused',
  message: 'no',
  isOutage: false,
  isTransient: false,
};
const ready = (status: VMStatus) => conditionOf(status.conditions, 'Ready');
const available = (status: VMStatus) => conditionOf(status.conditions, 'CloudAvailable');

describe('new VMs', () => {
  test('a VM with an empty vmId has no machine; the predecessor of this operator writes an empty vmId for new VMs', () => {
    expect(lookup(vm({ vmId: '' }), {})).toEqual({ type: 'checkName', name: 'vmsample' });
    expect(isOutdated(vm({ vmId: '', opStatus: 'New' }), new Map())).toBe(false);
    expect(ended(next(vm({ vmId: '' }), { server: running }))).toMatchObject({ vmId: 's-1' });
    expect(ended(next(vm({ vmId: '' }), { server: { gone: 's-0' } }))).toMatchObject({ vmId: 's-0' });
  });

  test('the machine of a new VM is created after its name was checked', () => {
    expect(lookup(vm(), {})).toEqual({ type: 'checkName', name: 'vmsample' });
    const { status, actions } = next(vm(), { name: 'accepted' });
    expect(valid(status)).toMatchObject({ opStatus: 'New', attempts: 1 });
    expect(actions).toEqual([{ type: 'create', server: { name: 'vmsample', labels }, key: 'u-1' }]);
  });

  test('each attempt to create a machine increments the counter in the status', () => {
    const object = vm({ attempts: 4, opStatus: 'Failed', msg: 'no room' });
    expect(attempt(object, { name: 'accepted' })).toMatchObject({ type: 'create' });
    const { status } = next(object, { name: 'accepted' });
    expect(status).toMatchObject({ attempts: 5, opStatus: 'Failed', msg: 'no room' });
  });

  test('a new VM reports the error of the last attempt until the next attempt ends', () => {
    const failed = errorStatus(vm({ attempts: 1 }), UNREACHABLE, NOW);
    const { status } = next(vm(failed), { name: 'accepted' });
    expect([ready(status), available(status)]).toEqual([ready(failed), available(failed)]);
  });

  test('a new VM with a rejected name gets no machine', () => {
    const message = 'the name vmsample is prohibited';
    const rejection = { name: { reason: 'Prohibited', message } } as const;
    const rejected = next(vm(), rejection);
    expect(rejected).toMatchObject({
      requeueAfterMs: 300_000,
      event: { type: 'Warning', reason: 'NameProhibited' },
    });
    const status = ended(rejected);
    expect(status).toMatchObject({ opStatus: 'Failed', msg: message });
    expect(conditionOf(status.conditions, 'NameAccepted')).toMatchObject({
      status: 'False',
      reason: 'Prohibited',
      message,
    });
    expect(ready(status)).toMatchObject({ status: 'False', reason: 'NameProhibited', observedGeneration: 3 });
    expect(next(vm(status), rejection)).toEqual({ status, actions: [], requeueAfterMs: 300_000 });
    const lifted = valid(next(vm(status), { name: 'accepted' }).status);
    expect(conditionOf(lifted.conditions, 'NameAccepted')).toMatchObject({ status: 'True' });
  });
});

describe('VMs that have a machine', () => {
  test('a VM reports the state of its machine', () => {
    expect(lookup(vm({ vmId: 's-1' }), {})).toEqual({ type: 'get', id: 's-1' });
    const status = ended(next(vm({ vmId: 's-1' }), { server: running }));
    expect(status).toMatchObject({ vmId: 's-1', cpuUtilization: 42, opStatus: 'Running' });
    expect(ready(status)).toMatchObject({ status: 'True', reason: 'Running' });
  });

  test.each([
    ['building', 'New', 'False', 'Building'],
    ['failed', 'Failed', 'False', 'MachineFailed'],
    ['deleting', 'Unknown', 'False', 'MachineDeleting'],
  ] as const)('a VM whose machine is %s reports %s and no utilization', (state, opStatus, status, reason) => {
    const reported = machineStatus(vm({ vmId: 's-1', cpuUtilization: 7 }), { ...running, state }, NOW);
    expect(reported).toMatchObject({ opStatus });
    expect(reported.cpuUtilization).toBeUndefined();
    expect(ready(reported)).toMatchObject({ status, reason });
  });

  test('a machine that the cloud has lost is not replaced without the annotation recreate', () => {
    const seen = { server: { gone: 's-1' }, owned: 'none' } as const;
    const lost = next(vm({ vmId: 's-1', cpuUtilization: 7, opStatus: 'Running' }), seen);
    expect(lost).toMatchObject({ event: { type: 'Warning', reason: 'VmLost' } });
    const status = ended(lost);
    expect(status).toMatchObject({ vmId: 's-1', opStatus: 'Unknown' });
    expect(conditionOf(status.conditions, 'VmLost')?.message).toBe(
      'The cloud has no machine s-1 any more. Delete the VM, or annotate it with vmwright.dev/recreate=true to get a new machine',
    );
    // The next reconcile changes nothing and records no event.
    expect(next(vm(status), seen)).toEqual({ status, actions: [] });
    // A cloud that was restored from a backup has the machine again.
    const back = ended(next(vm(status), { server: running }));
    expect(conditionOf(back.conditions, 'VmLost')).toBeUndefined();
    expect(ready(back)?.status).toBe('True');
  });

  test('with the annotation recreate, a lost machine is replaced: its id is removed from the status, and the idempotency key changes', () => {
    const object = vm({ vmId: 's-1', attempts: 1 }, RECREATE);
    const recreating = next(object, { server: { gone: 's-1' }, owned: 'none' });
    expect(recreating).toMatchObject({
      requeueAfterMs: 0,
      event: { reason: 'Recreating', note: 'Machine s-1 is gone; creating a new one' },
    });
    const given = vm(ended(recreating), RECREATE);
    expect(given.status?.vmId).toBeUndefined();
    expect(lookup(given, {})).toEqual({ type: 'checkName', name: 'vmsample' });
    expect(attempt(given, { name: 'accepted' })).toMatchObject({ type: 'create', key: 'u-1.1' });
  });

  test('a failed machine is replaced only with the annotation recreate; else the status names a remedy', () => {
    const server: Server = { ...running, state: 'failed', message: 'no room' };
    expect(ended(next(vm({ vmId: 's-1' }), { server })).msg).toBe(
      'The machine has failed (no room). Delete the VM, or annotate it with vmwright.dev/recreate=true to get a new machine',
    );
    const object = vm({ vmId: 's-1', attempts: 1 }, RECREATE);
    const replaced = {
      opStatus: 'Failed',
      msg: 'The machine has failed (no room). The operator creates a new machine',
    } as const;
    expect(attempt(object, { server })).toEqual({ type: 'delete', id: 's-1' });
    expect(next(object, { server }).status).toMatchObject({ ...replaced, attempts: 2 });
    // The error of an earlier attempt stays in the status until the delete has succeeded.
    const failing = errorStatus(object, UNREACHABLE, NOW);
    expect(attempt(vm(failing, RECREATE), { server })).toEqual({ type: 'delete', id: 's-1' });
    expect(next(vm(failing, RECREATE), { server }).status).toEqual({ ...failing, attempts: 2 });
    expect(ended(next(vm(failing, RECREATE), { server, isDeleted: true }))).toMatchObject(replaced);
    // A machine without ownership labels is not deleted, and no replacement is announced.
    expect(
      ended(next(vm({ vmId: 's-1' }, RECREATE), { server: { ...server, labels: {} }, owned: 'none' })).msg,
    ).toBe(
      'The machine has failed (no room). The operator does not remove it, because its label vmwright.dev/uid is gone: delete it in the cloud to get a new machine',
    );
  });

  test.each([
    ['the first', 0, 0],
    ['the second', 1, 10_000],
    ['the fourth', 3, 40_000],
    ['the hundredth', 99, 300_000],
  ])(
    'the delay before the replacement of %s lost or failed machine follows an exponential back-off',
    (_, recreations, pauseMs) => {
      const made = { vmId: 's-1', recreations, recreatedAt: new Date(NOW - 1_000).toISOString() };
      const object = vm(recreations === 0 ? { vmId: 's-1' } : made, RECREATE);
      const failed: Seen = { server: { ...running, state: 'failed', message: 'no room' } };
      const gone: Seen = { server: { gone: 's-1' }, owned: 'none' };
      if (pauseMs > 0) {
        const pause = `The operator creates a new machine, at the earliest ${pauseMs / 1_000} s after the previous replacement`;
        const requeueAfterMs = pauseMs - 1_000;
        expect(next(object, failed)).toMatchObject({ requeueAfterMs });
        expect(ended(next(object, failed)).msg).toBe(`The machine has failed (no room). ${pause}`);
        expect(next(object, gone)).toMatchObject({ requeueAfterMs, status: { vmId: 's-1' } });
        expect(ended(next(object, gone)).msg).toBe(`The cloud has no machine s-1 any more. ${pause}`);
      }
      for (const later of [NOW - 1_000 + pauseMs, NOW - 3_600_000]) {
        expect(attempt(object, failed, later)).toEqual({ type: 'delete', id: 's-1' });
        const recreating = next(object, gone, later);
        expect(recreating).toMatchObject({ event: { reason: 'Recreating' }, requeueAfterMs: 0 });
        expect(ended(recreating)).toMatchObject({
          recreations: recreations + 1,
          recreatedAt: new Date(later).toISOString(),
        });
      }
    },
  );

  test('wrong ownership labels are repaired at most once per reconcile, and never if the UID label is missing', () => {
    const server: Server = { ...running, labels: { ...labels, 'vmwright.dev/cluster': 'old' } };
    const { 'vmwright.dev/uid': _, ...repaired } = labels;
    const action = { type: 'relabel', id: 's-1', labels: repaired };
    expect(lookup(vm({ vmId: 's-1' }), { server })).toEqual(action);
    // The labels are not repaired twice in one reconcile, even if the cloud ignores the change.
    ended(next(vm({ vmId: 's-1' }), { server, isRelabelled: true }));
    // An orphaned machine is not adopted.
    ended(next(vm({ vmId: 's-1' }), { server: { ...running, labels: {} }, owned: 'none' }));
  });

  test('a VM with a machine has the condition NameAccepted, even if its name was rejected before', () => {
    const rejected = ended(next(vm(), { name: { reason: 'Prohibited', message: 'no' } }));
    const status = ended(next(vm(rejected), { server: running }));
    expect(conditionOf(status.conditions, 'NameAccepted')).toMatchObject({ status: 'True' });
  });

  test('the opStatus of a VM with a machine is Unknown after a failed or rejected request', () => {
    const before = machineStatus(vm(), running, NOW);
    for (const reason of ['CloudUnreachable', 'CloudBusy', 'CloudUnauthorized', 'CloudRefused'] as const) {
      const isOutage = reason !== 'CloudRefused';
      const error = { reason, message: 'some cause', isOutage, isTransient: false };
      const status = valid(errorStatus(vm(before), error, NOW));
      expect(status).toMatchObject({ vmId: 's-1', opStatus: 'Unknown', msg: 'some cause' });
      // After a rejected request, the work queue retries the VM with back-off. So the periodic list of the servers must
      // not enqueue it.
      expect(isOutdated(vm(status), new Map([[running.id, running]]))).toBe(isOutage);
    }
    expect(errorStatus(vm(), REJECTED, NOW).opStatus).toBe('Failed');
  });

  test('a machine that is lost before its id was stored is reported without an id', () => {
    const status = ended(next(vm({ attempts: 1 }), { server: { gone: undefined } }));
    expect(status.vmId).toBeUndefined();
    expect(status.msg).toContain('The cloud has no machine of this VM any more');
  });
});

describe('CloudAvailable', () => {
  const before = machineStatus(vm(), running, NOW);

  test('CloudAvailable is True after an answer of the cloud', () => {
    const answering = { status: 'True', reason: 'Answering', observedGeneration: 3 };
    expect(available(before)).toMatchObject(answering);
    expect(available(next(vm(), { name: 'accepted' }).status)).toMatchObject(answering);
    const lost = ended(next(vm(before), { server: { gone: 's-1' }, owned: 'none' }));
    expect(available(lost)).toMatchObject(answering);
  });

  test('CloudAvailable is False during an outage, and True when the cloud answers again', () => {
    const status = valid(errorStatus(vm(before), UNREACHABLE, NOW));
    expect(available(status)).toMatchObject({
      status: 'False',
      reason: 'CloudUnreachable',
      message: 'no answer',
      observedGeneration: 3,
    });
    expect(ready(status)).toMatchObject({ status: 'Unknown', reason: 'CloudUnreachable' });
    const back = ended(next(vm(status), { server: running }));
    expect(isTrue(back.conditions, 'CloudAvailable')).toBe(true);
  });

  test('CloudAvailable is True when the cloud rejects a request', () => {
    expect(available(valid(errorStatus(vm(before), REJECTED, NOW)))).toMatchObject({ status: 'True' });
  });

  test('CloudAvailable stays False when the status reports the deletion of the VM during an outage', () => {
    const status = errorStatus(vm(before), UNREACHABLE, NOW);
    expect(available(deletingStatus(vm(status), NOW, 'Deleting the machine'))).toEqual(available(status));
  });

  test('CloudAvailable is not written again while nothing changes', () => {
    const later = NOW + 3_600_000;
    expect(next(vm(before), { server: running }, later).status).toEqual(before);
    const status = errorStatus(vm(before), UNREACHABLE, NOW);
    expect(errorStatus(vm(status), UNREACHABLE, later)).toEqual(status);
  });
});

describe('paused VMs', () => {
  const PAUSED = { 'vmwright.dev/paused': 'true' };

  test('a paused VM is observed and has the condition Paused', () => {
    expect(lookup(vm({ vmId: 's-1' }, PAUSED), {})).toEqual({ type: 'get', id: 's-1' });
    const status = ended(next(vm({ vmId: 's-1' }, PAUSED), { server: running }));
    expect(status).toMatchObject({ opStatus: 'Running', cpuUtilization: 42 });
    expect(conditionOf(status.conditions, 'Paused')).toMatchObject({
      status: 'True',
      message:
        'The operator observes the object and changes nothing; remove the annotation vmwright.dev/paused to resume',
    });
    const resumed = ended(next(vm(status), { server: running }));
    expect(conditionOf(resumed.conditions, 'Paused')).toBeUndefined();
  });

  test('the machine of a paused VM is not created, relabelled, deleted or replaced', () => {
    expect(ended(next(vm(undefined, PAUSED), {}))).toMatchObject({
      msg: 'No machine is created while the VM is paused',
    });
    const object = vm({ vmId: 's-1' }, { ...PAUSED, ...RECREATE });
    const foreign = { ...running, labels: { ...labels, 'vmwright.dev/cluster': 'old' } };
    for (const server of [foreign, { ...running, state: 'failed' } as const])
      expect(ended(next(object, { server }))).toMatchObject({ vmId: 's-1' });
    const gone = ended(next(object, { server: { gone: 's-1' }, owned: 'none' }));
    expect(gone).toMatchObject({ vmId: 's-1' });
    expect(ready(gone)?.reason).toBe('VmLost');
  });
});

describe('wrong vmIds', () => {
  const stolen: Server = { ...running, id: 's-2', labels: { ...labels, 'vmwright.dev/uid': 'u-2' } };
  const unlabelled: Server = { ...running, id: 's-3', labels: {} };

  test.each([
    ['a machine of another VM', stolen],
    ['a machine without an owner', unlabelled],
    ['a machine that does not exist', { gone: 's-4' }],
  ])('a vmId that names %s is replaced by the id of the VM’s own machine', (_, server) => {
    const vmId = 'gone' in server ? server.gone : server.id;
    const object = vm({ vmId });
    expect(lookup(object, { server })).toEqual({ type: 'findOwned', except: vmId });
    const repaired = next(object, { server, owned: running });
    expect(repaired).toMatchObject({
      requeueAfterMs: 0,
      event: {
        type: 'Warning',
        reason: 'VmIdRepaired',
        note: `status.vmId named ${vmId}, which is not the machine of this VM; corrected to s-1`,
      },
    });
    expect(ended(repaired)).toMatchObject({ vmId: 's-1', opStatus: 'Running', repairs: 1 });
  });

  test('a VM is VmLost if its vmId names a foreign machine and it has no machine of its own', () => {
    const foreign: Server = { ...unlabelled, name: 'vmother' };
    expect(ready(ended(next(vm({ vmId: 's-3' }), { server: foreign, owned: 'none' })))?.reason).toBe(
      'VmLost',
    );
    const status = ended(next(vm({ vmId: 's-2' }), { server: stolen, owned: 'none' }));
    expect(ready(status)).toMatchObject({ status: 'False', reason: 'VmLost' });
    expect(status.cpuUtilization).toBeUndefined();
    expect(status.msg).toBe(
      'Machine s-2 does not belong to this VM, and the cloud has no machine of this VM. Delete the VM, or annotate it with vmwright.dev/recreate=true to get a new machine',
    );
    expect(isOutdated(vm(status), new Map([[stolen.id, stolen]]))).toBe(false);
  });
});

describe('lists of servers', () => {
  const servers = (...all: readonly Server[]) => new Map(all.map((server) => [server.id, server]));
  const good = vm(machineStatus(vm(), running, NOW));

  test('after the cloud has listed its servers, a VM is enqueued only if its status differs from the list', () => {
    expect(isOutdated(good, servers(running))).toBe(false);
    expect(isOutdated(good, servers({ ...running, cpuUtilization: 43 }))).toBe(true);
    expect(isOutdated(good, servers({ ...running, state: 'failed' }))).toBe(true);
    expect(isOutdated(good, servers())).toBe(true);
    expect(isOutdated(vm({ attempts: 1, opStatus: 'New' }), servers())).toBe(false);
  });

  test('after the cloud has listed its servers, a VM without a server is enqueued if its status reports an outage', () => {
    const status = errorStatus(vm({ attempts: 1 }), UNREACHABLE, NOW);
    expect(isOutdated(vm(status), servers())).toBe(true);
    expect(isOutdated(vm(errorStatus(vm({ attempts: 1 }), REJECTED, NOW)), servers())).toBe(false);
  });

  test('after the cloud has listed its servers, a VM with a lost server is enqueued only if it may be recreated', () => {
    const lost = ended(next(good, { server: { gone: 's-1' }, owned: 'none' }));
    expect(isOutdated(vm(lost), servers())).toBe(false);
    expect(isOutdated(vm(lost, RECREATE), servers())).toBe(true);
  });
});
