import { collectingLogger, Fence, type Tracer } from '@vmwright/runtime';
import { type ChangeOptions, FaultError, type Ref } from '@vmwright/vsphere';
import { describe, expect, test } from 'vitest';
import { type ConditionError, ReportedError } from '../vcenter/errors.ts';
import { instanceUuid } from '../vcenter/ownership.ts';
import { OperationCancelledError, ResizeRejectedError } from './errors.ts';
import type { Operation } from './group-in-flight.ts';
import { InFlight } from './in-flight.ts';
import type { VmGroup } from './resource.ts';

const TASK: Ref<'Task'> = { type: 'Task', value: 'task-1' };
const KEY = 'shop/web';

function group(generation = 1, uid = 'u-1', spec: Partial<VmGroup['spec']> = {}): VmGroup {
  return {
    metadata: { namespace: 'shop', name: 'web', uid, generation },
    spec: { cpu: 1, memory: 1, replicas: 1, template: 'small', ...spec },
  };
}

function start(tracer?: Tracer) {
  const timers = new Set<() => void>();
  const world = {
    at: 0,
    timers,
    monotonic: () => world.at,
    random: () => 0.5,
    after: (_ms: number, callback: () => void) => {
      timers.add(callback);
      return { cancel: () => void timers.delete(callback) };
    },
  };
  const enqueued: string[] = [];
  const { logger: log, lines } = collectingLogger();
  const inFlight = new InFlight({ world, log, tracer, enqueue: (key) => enqueued.push(key) });
  const term = new Fence();
  const state = inFlight.of(KEY, group(), term);
  const permit = {
    released: 0,
    release: () => {
      permit.released += 1;
    },
    [Symbol.dispose]: () => permit.release(),
  };
  const requeueMs = () => {
    const at = state.nextReconcileAt();
    return at === undefined ? undefined : at - world.at;
  };
  return { world, enqueued, inFlight, state, permit, requeueMs, term, lines };
}

/** Returns an operation that runs until the test ends it. */
function pending(type: Operation['type'] = 'clone') {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const inventory = { isVisible: false };
  const operation: Operation = {
    type,
    machine: 'web-0',
    attempt: 'trying',
    reason: 'a test',
    run: (onAct) => {
      onAct(TASK, type === 'remove' ? 'delete' : 'create');
      return promise;
    },
    isVisible: () => inventory.isVisible,
  };
  return { operation, resolve, reject, inventory };
}

describe('operations', () => {
  test('an operation releases its permit when it ends, and the slot of its machine when the inventory shows the result', async () => {
    const { state, enqueued, permit } = start();
    const { operation, resolve, inventory } = pending();
    await state.start(0, operation, permit);
    expect([...state.operating()]).toMatchObject([[0, { type: 'clone', task: 'task-1' }]]);
    resolve();
    await expect.poll(() => enqueued).toEqual([KEY]);
    expect(permit.released).toBe(1);
    expect(state.operating().get(0)).toMatchObject({ task: undefined });
    inventory.isVisible = true;
    expect(state.operating().size).toBe(0);
  });

  test('isWaitingForInventory is true only after vCenter has finished all operations of the group', async () => {
    const { state, enqueued, permit } = start();
    const [one, other] = [pending(), pending()];
    expect(state.isWaitingForInventory).toBe(false);
    await state.start(0, one.operation, permit);
    await state.start(1, other.operation, permit);
    one.resolve();
    await expect.poll(() => enqueued).toHaveLength(1);
    expect(state.isWaitingForInventory).toBe(false);
    other.resolve();
    await expect.poll(() => enqueued).toHaveLength(2);
    expect(state.isWaitingForInventory).toBe(true);
    one.inventory.isVisible = other.inventory.isVisible = true;
    expect(state.isWaitingForInventory).toBe(false);
  });

  test('an operation frees the slot of its machine after 30 s if the inventory does not show its result', async () => {
    const { state, enqueued, permit, world, requeueMs } = start();
    const { operation, resolve } = pending();
    await state.start(0, operation, permit);
    resolve();
    await expect.poll(() => enqueued).toEqual([KEY]);
    expect(requeueMs()).toBeGreaterThan(0);
    world.at += requeueMs() ?? 0;
    expect(state.operating().size).toBe(0);
    expect(requeueMs()).toBe(undefined);
  });

  test('the back-off of an operation grows with each failure until the operation succeeds', async () => {
    const { state, enqueued, permit, world, requeueMs } = start();
    const delays: number[] = [];
    for (let count = 1; count <= 8; count++) {
      const { operation, reject } = pending('powerOn');
      await state.start(3, operation, permit);
      reject(new Error(`failure ${count}`));
      await expect.poll(() => enqueued.length).toBe(count);
      expect(state.operating().size).toBe(0);
      expect([...state.backoffs.slots('slot')]).toEqual([3]);
      expect(state.backoffs.failures().at(-1)).toMatchObject({
        error: { message: `failure ${count}` },
        attempt: 'trying',
      });
      delays.push(requeueMs() ?? 0);
      world.at += delays.at(-1) ?? 0;
      expect([...state.backoffs.slots('slot')]).toEqual([]);
    }
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    const { operation, resolve } = pending('powerOn');
    await state.start(3, operation, permit);
    resolve();
    await expect.poll(() => state.backoffs.failures().at(-1)).toBe(undefined);
  });

  test('a failed clone makes all clones of its group back off, but not those of other groups', async () => {
    const { state, inFlight, term, enqueued, permit } = start();
    const { operation, reject } = pending();
    await state.start(7, operation, permit);
    reject(new Error('no'));
    await expect.poll(() => enqueued).toEqual([KEY]);
    expect([...state.backoffs.slots('slot')]).toEqual([]);
    expect(state.backoffs.isActive('clones')).toBe(true);
    expect(inFlight.of('shop/other', group(1, 'u-2'), term).backoffs.isActive('clones')).toBe(false);
    inFlight.drop(KEY);
    expect(inFlight.of(KEY, group(), term).backoffs.failures()).toEqual([]);
  });

  test('if the error of a clone concerns only the new machine, only the operations on the slot of that machine back off', async () => {
    const { state, enqueued, permit } = start();
    const { operation, reject } = pending();
    await state.start(7, operation, permit);
    reject(new ReportedError({ reason: 'Moved', message: 'it was moved' }));
    await expect.poll(() => enqueued).toEqual([KEY]);
    expect([...state.backoffs.slots('slot')]).toEqual([7]);
    expect(state.backoffs.isActive('clones')).toBe(false);
    expect(state.backoffs.failures().at(-1)?.error).toMatchObject({ message: 'it was moved' });
  });

  test('consecutive failures of an operation are counted even if each attempt takes ten minutes', async () => {
    const { state, enqueued, permit, world, requeueMs } = start();
    const delays: number[] = [];
    for (let count = 1; count <= 4; count++) {
      const { operation, reject } = pending();
      await state.start(0, operation, permit);
      world.at += 600_000;
      if (count > 1)
        expect(state.backoffs.failures().at(-1)).toMatchObject({ error: { message: 'no room' } });
      reject(new Error('no room'));
      await expect.poll(() => enqueued.length).toBe(count);
      delays.push(requeueMs() ?? 0);
      world.at += delays.at(-1) ?? 0;
    }
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000]);
  });

  test('an operation that takes longer than ten minutes keeps the slot of its machine and releases its permit', async () => {
    const { state, permit, world } = start();
    const { operation } = pending();
    await state.start(0, operation, permit);
    expect(permit.released).toBe(0);
    for (const fire of world.timers) fire();
    expect(permit.released).toBe(1);
    expect(state.operating().size).toBe(1);
  });

  test('repeated power-ons of the same machine back off even if each of them succeeds, and no failure is reported', async () => {
    const { state, enqueued, permit, world, requeueMs } = start();
    const delays: number[] = [];
    for (let count = 1; count <= 8; count++) {
      const { operation, resolve, inventory } = pending('powerOn');
      await state.start(3, operation, permit);
      resolve();
      await expect.poll(() => enqueued.length).toBe(count);
      inventory.isVisible = true;
      expect(state.operating().size).toBe(0);
      expect([...state.backoffs.slots('slot')]).toEqual([3]);
      delays.push(requeueMs() ?? 0);
      world.at += delays.at(-1) ?? 0;
      expect([...state.backoffs.slots('slot')]).toEqual([]);
      expect(state.backoffs.failures().at(-1)).toBe(undefined);
    }
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  test('a rejected size is tried again after ten minutes, and another size immediately', async () => {
    const { inFlight, term, state, enqueued, permit, requeueMs } = start();
    const { operation, reject } = pending('resize');
    await state.start(0, operation, permit);
    const fault = new FaultError('resizing', 'InvalidArgument', {}, '');
    reject(new ResizeRejectedError(fault, { retryable: false }));
    await expect.poll(() => enqueued).toEqual([KEY]);
    expect(requeueMs()).toBe(600_000);
    expect(state.backoffs.failures().at(-1)?.error).toBe(fault);
    // Only resizes of the machine back off. It can still be powered on and removed.
    expect([...state.backoffs.slots('size')]).toEqual([0]);
    expect([...state.backoffs.slots('slot')]).toEqual([]);
    expect(inFlight.of(KEY, group(2, 'u-1', { replicas: 2 }), term)).toBe(state);
    expect([...state.backoffs.slots('size')]).toEqual([0]);
    inFlight.of(KEY, group(3, 'u-1', { cpu: 2 }), term);
    expect([...state.backoffs.slots('size')]).toEqual([]);
  });

  test('a resize that fails with a temporary error is retried with exponential back-off', async () => {
    const { state, enqueued, permit, world, requeueMs } = start();
    const delays: number[] = [];
    for (let count = 1; count <= 7; count++) {
      const { operation, reject } = pending('resize');
      await state.start(0, operation, permit);
      reject(new ResizeRejectedError(new Error('the datastore is busy'), { retryable: true }));
      await expect.poll(() => enqueued.length).toBe(count);
      expect([...state.backoffs.slots('size')]).toEqual([0]);
      delays.push(requeueMs() ?? 0);
      world.at += delays.at(-1) ?? 0;
      expect([...state.backoffs.slots('size')]).toEqual([]);
    }
    expect(delays).toEqual([30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]);
    const { operation, resolve } = pending('resize');
    await state.start(0, operation, permit);
    resolve();
    await expect.poll(() => state.backoffs.failures().at(-1)).toBe(undefined);
  });

  test('once an operation has proved that a machine is gone, the proof holds until the inventory lists the machine or a clone starts', async () => {
    const { inFlight, term, state, enqueued, permit } = start();
    const succeed = async (type: Operation['type'], proof?: boolean) => {
      const { operation, resolve } = pending(type);
      const provesGone = proof === undefined ? {} : { provesGone: () => proof };
      await state.start(0, { ...operation, ...provesGone }, permit);
      resolve();
      await expect.poll(() => enqueued.shift()).toBe(KEY);
    };
    const gone = (...listed: number[]) => [...state.gone(listed)];
    await succeed('lookUp', false);
    expect(gone()).toEqual([]);
    await succeed('remove', true);
    expect(gone()).toEqual([0]);
    expect([gone(0), gone()]).toEqual([[], []]);
    await succeed('lookUp', true);
    expect(gone()).toEqual([0]);
    await succeed('clone');
    expect(gone()).toEqual([]);
    await succeed('lookUp', true);
    inFlight.drop(KEY);
    expect([...inFlight.of(KEY, group(), term).gone([])]).toEqual([]);
  });

  test('an operation is logged with its vCenter task, and its failure with the time until the retry', async () => {
    const { state, enqueued, permit, lines, world } = start();
    const failing = pending();
    await state.start(0, failing.operation, permit);
    world.at += 1_500;
    failing.reject(new Error('no space left'));
    await expect.poll(() => enqueued).toHaveLength(1);
    const { operation, resolve } = pending('remove');
    await state.start(0, operation, permit);
    resolve();
    await expect.poll(() => enqueued).toHaveLength(2);
    const machine = instanceUuid('u-1', 0);
    const fields = { kind: 'VmGroup', object: KEY, machine, machineName: 'web-0', task: 'task-1' };
    const audited = { ...fields, uid: 'u-1', generation: 1, resource: 'VirtualMachine', reason: 'a test' };
    const failed = { error: 'no space left', tookMs: 1_500, retryInMs: 1_000 };
    expect(lines).toMatchObject([
      { level: 'info', msg: 'Creating machine', audit: 'create', ...audited },
      { level: 'warn', msg: 'Cloning a machine failed', operation: 'clone', ...fields, ...failed },
      { level: 'info', msg: 'Deleting machine', audit: 'delete', ...audited },
      { level: 'debug', msg: 'Operation succeeded', operation: 'remove', ...fields },
    ]);
  });

  test('an operation is listed with its machine, its vCenter task and its age while it is in flight', async () => {
    const { state, inFlight, permit, world } = start();
    const { operation } = pending();
    await state.start(3, operation, permit);
    world.at += 1_500;
    expect(inFlight.list()).toEqual([
      {
        object: KEY,
        slot: 3,
        operation: 'clone',
        machine: 'web-0',
        task: 'task-1',
        forMs: 1_500,
        isWaitingForInventory: false,
      },
    ]);
    inFlight.clear();
    expect(inFlight.list()).toEqual([]);
  });

  test('an operation runs in a span of its own, because it outlives the reconcile that starts it', async () => {
    const spans: string[] = [];
    const tracer: Tracer = {
      span: async (name, attributes, work) => {
        spans.push(`${name} ${attributes['machine.name']}`);
        return work({ traceId: '', set: () => undefined });
      },
      call: () => undefined,
    };
    const { state, enqueued, permit } = start(tracer);
    const { operation, resolve } = pending();
    await state.start(0, operation, permit);
    resolve();
    await expect.poll(() => enqueued).toEqual([KEY]);
    expect(spans).toEqual(['vmgroup clone web-0']);
  });

  test('when an operation ends, its abort signal is aborted, and the leadership term does not end', async () => {
    const { state, enqueued, permit, term } = start();
    const { operation, resolve } = pending();
    let scope: ChangeOptions = {};
    const run: Operation['run'] = (onAct, given) => {
      scope = given;
      return operation.run(onAct, given);
    };
    await state.start(0, { ...operation, run }, permit);
    resolve();
    await expect.poll(() => enqueued).toEqual([KEY]);
    expect(scope.signal?.aborted).toBe(true);
    term.assertOpen();
  });
});

describe('a cancelled operation sends nothing more, releases its permit, and leaves no failure', () => {
  const ways = {
    'when its group is dropped': ({ inFlight }) => inFlight.drop(KEY),
    'when all groups are dropped': ({ inFlight }) => inFlight.clear(),
    'when its group is re-created': ({ inFlight, term }) => inFlight.of(KEY, group(1, 'u-2'), term),
    'when its group is reconciled in another term': ({ inFlight }) => inFlight.of(KEY, group(), new Fence()),
    'when its term ends': ({ term }) => term.close(new OperationCancelledError()),
  } satisfies Record<string, (env: ReturnType<typeof start>) => void>;
  test.each(Object.entries(ways))('an operation is cancelled %s', async (_, cancel) => {
    const env = start();
    const { state, enqueued, permit } = env;
    const scopes: ChangeOptions[] = [];
    const operation: Operation = {
      ...pending('remove').operation,
      run: (onAct, scope) => {
        scopes.push(scope);
        onAct(TASK, 'delete');
        return new Promise((_resolve, reject) => {
          scope.signal?.addEventListener('abort', () => reject(scope.signal?.reason), { once: true });
        });
      },
    };
    await state.start(0, operation, permit);
    const [scope] = scopes;
    scope?.assertLeader?.();
    cancel(env);
    await expect.poll(() => permit.released).toBe(1);
    expect(() => scope?.assertLeader?.()).toThrow(OperationCancelledError);
    // The group is not enqueued. Otherwise, after the end of the leadership term, its reconciles would fail in a loop.
    expect(enqueued).toEqual([]);
    expect([...state.operating(), ...state.backoffs.slots('slot')]).toEqual([]);
    expect(state.backoffs.failures()).toEqual([]);
  });
});

describe('dropped failures', () => {
  test('failures of a power-on and of a resize of the same machine are dropped a minute after their back-offs end', async () => {
    const { state, enqueued, permit, world } = start();
    const fail = async (type: Operation['type'], error: Error) => {
      const { operation, reject } = pending(type);
      await state.start(0, operation, permit);
      reject(error);
      await expect.poll(() => enqueued.shift()).toBe(KEY);
    };
    await fail('powerOn', new Error('no room'));
    world.at += 2_000;
    await fail('resize', new ResizeRejectedError(new Error('busy'), { retryable: true }));
    expect(state.backoffs.failures().at(-1)?.error).toMatchObject({ message: 'busy' });
    world.at += 200_000;
    expect(state.backoffs.failures().at(-1)).toBe(undefined);
  });

  test('failures of a clone are dropped a minute after their back-off ends', async () => {
    const { state, enqueued, permit, world } = start();
    const { operation, reject } = pending();
    await state.start(0, operation, permit);
    reject(new Error('the response was lost'));
    await expect.poll(() => enqueued).toEqual([KEY]);
    world.at += 62_000;
    expect(state.backoffs.failures().at(-1)).toBe(undefined);
  });

  test('failures stay listed in the order in which they first occurred, even if their retries fail', async () => {
    const { state, enqueued, permit, world } = start();
    const fail = async (slot: number) => {
      const { operation, reject } = pending('powerOn');
      await state.start(slot, operation, permit);
      reject(new Error(`slot ${slot}`));
      await expect.poll(() => enqueued.shift()).toBe(KEY);
    };
    for (const slot of [2, 0, 1, 2, 0]) {
      await fail(slot);
      world.at += 1_000;
    }
    expect(state.backoffs.failures().map(({ error }) => String(error))).toEqual(
      [2, 0, 1].map((slot) => `Error: slot ${slot}`),
    );
  });
});

test('each vCenter task in the status is adopted only once', () => {
  const { state, permit } = start();
  const replica = {
    slot: 4,
    name: 'web-4',
    instanceUuid: 'x',
    created: '2026-01-01T00:00:00Z',
    task: 'task-9',
  };
  let adopted = 0;
  const adopt = () => {
    adopted += 1;
    return [pending('clone').operation, permit] satisfies [Operation, typeof permit];
  };
  state.adopt(
    [replica, { ...replica, slot: 5, task: undefined }].map(({ task, ...rest }) => ({
      ...rest,
      ...(task && { task }),
    })),
    adopt,
  );
  state.adopt([replica], adopt);
  expect(adopted).toBe(1);
  expect([...state.operating().keys()]).toEqual([4]);
});

describe('reported errors', () => {
  const full = { reason: 'VcenterRefused', message: 'no space' } as const;
  const moved = { reason: 'Moved', message: 'x was moved' } as const;

  test('errors are reported once per cause, and again after the cause disappeared', () => {
    const { state } = start();
    const unreported = (...errors: readonly ConditionError[]) =>
      state.unreported(errors).map(({ reason }) => reason);
    expect(unreported(full, full)).toEqual(['VcenterRefused']);
    expect(unreported(full)).toEqual([]);
    expect(unreported(full, moved)).toEqual(['Moved']);
    expect(unreported(moved)).toEqual([]);
    expect(unreported(full, moved)).toEqual(['VcenterRefused']);
    expect(unreported()).toEqual([]);
    expect(unreported(moved)).toEqual(['Moved']);
  });

  test('errors are not reported if they only say that another operation must finish first', () => {
    const busy = { reason: 'VcenterBusy', message: 'wait', isProgressing: true } as const;
    expect(start().state.unreported([busy])).toEqual([]);
  });
});
