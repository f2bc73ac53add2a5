import { collectingLogger, Fence } from '@vmwright/runtime';
import { type ChangeOptions, FaultError, type Ref } from '@vmwright/vsphere';
import { describe, expect, test } from 'vitest';
import { InVainError, type Operation, OperationCancelledError, Operations } from './operations.ts';
import { GroupError } from './trouble.ts';

const TASK: Ref<'Task'> = { type: 'Task', value: 'task-1' };

function start() {
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
  const woken: string[] = [];
  const { logger: log, lines } = collectingLogger();
  const operations = new Operations({ world, log, wake: (group) => woken.push(group) });
  const turn = {
    ended: 0,
    release: () => {
      turn.ended += 1;
    },
    [Symbol.dispose]: () => turn.release(),
  };
  const againMs = () => {
    const at = operations.nextLookAt('g');
    return at === undefined ? undefined : at - world.at;
  };
  return { world, woken, operations, turn, againMs, term: new Fence(), lines };
}

/** One that goes on until it is told how it ends. */
function endless(what: Operation['what'] = 'clone') {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const shown = { is: false };
  const operation: Operation = {
    what,
    machine: 'web-0',
    words: 'trying',
    run: (at) => {
      at(TASK);
      return promise;
    },
    shows: () => shown.is,
  };
  return { operation, resolve, reject, shown };
}

describe('operations', () => {
  test('a slot is busy until what was done shows, and its turn is given back before', async () => {
    const { operations, woken, turn, term } = start();
    const { operation, resolve, shown } = endless();
    await operations.begin('g', 0, operation, turn, term);
    expect([...operations.of('g')]).toMatchObject([[0, { what: 'clone', task: 'task-1' }]]);
    resolve();
    await expect.poll(() => woken).toEqual(['g']);
    expect(turn.ended).toBe(1);
    expect(operations.of('g').get(0)).toMatchObject({ task: undefined });
    shown.is = true;
    expect(operations.of('g').size).toBe(0);
  });

  test('only to be shown is what vCenter is done with, while it is at nothing else', async () => {
    const { operations, woken, turn, term } = start();
    const [one, other] = [endless(), endless()];
    expect(operations.isWaitingToShow('g')).toBe(false);
    await operations.begin('g', 0, one.operation, turn, term);
    await operations.begin('g', 1, other.operation, turn, term);
    one.resolve();
    await expect.poll(() => woken).toHaveLength(1);
    expect(operations.isWaitingToShow('g')).toBe(false);
    other.resolve();
    await expect.poll(() => woken).toHaveLength(2);
    expect(operations.isWaitingToShow('g')).toBe(true);
    one.shown.is = other.shown.is = true;
    expect(operations.isWaitingToShow('g')).toBe(false);
  });

  test('what does not show is not waited for for ever, and the group is looked at then', async () => {
    const { operations, woken, turn, world, againMs, term } = start();
    const { operation, resolve } = endless();
    await operations.begin('g', 0, operation, turn, term);
    resolve();
    await expect.poll(() => woken).toEqual(['g']);
    expect(againMs()).toBeGreaterThan(0);
    world.at += againMs() ?? 0;
    expect(operations.of('g').size).toBe(0);
    expect(againMs()).toBe(undefined);
  });

  test('what fails rests for a while that grows, and a success forgets it', async () => {
    const { operations, woken, turn, world, againMs, term } = start();
    const rests: number[] = [];
    for (let count = 1; count <= 8; count++) {
      const { operation, reject } = endless('powerOn');
      await operations.begin('g', 3, operation, turn, term);
      reject(new Error(`failure ${count}`));
      await expect.poll(() => woken.length).toBe(count);
      expect(operations.of('g').size).toBe(0);
      expect([...operations.restingOf('g')]).toEqual([3]);
      expect(operations.failuresOf('g').at(-1)).toMatchObject({
        error: { message: `failure ${count}` },
        words: 'trying',
      });
      rests.push(againMs() ?? 0);
      world.at += rests.at(-1) ?? 0;
      expect([...operations.restingOf('g')]).toEqual([]);
    }
    expect(rests).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    const { operation, resolve } = endless('powerOn');
    await operations.begin('g', 3, operation, turn, term);
    resolve();
    await expect.poll(() => operations.failuresOf('g').at(-1)).toBe(undefined);
  });

  test('clones of a group rest together, and those of another do not', async () => {
    const { operations, woken, turn, term } = start();
    const { operation, reject } = endless();
    await operations.begin('g', 7, operation, turn, term);
    reject(new Error('no'));
    await expect.poll(() => woken).toEqual(['g']);
    expect([...operations.restingOf('g')]).toEqual([]);
    expect(['g', 'other'].map((group) => operations.isCloningAtRest(group))).toEqual([true, false]);
    operations.forget('g');
    expect(operations.failuresOf('g').at(-1)).toBe(undefined);
  });

  test('what is wrong with one machine alone keeps none of the others from being made', async () => {
    const { operations, woken, turn, term } = start();
    const { operation, reject } = endless();
    await operations.begin('g', 7, operation, turn, term);
    reject(new GroupError({ reason: 'Moved', message: 'it was moved' }));
    await expect.poll(() => woken).toEqual(['g']);
    expect([...operations.restingOf('g')]).toEqual([7]);
    expect(operations.isCloningAtRest('g')).toBe(false);
    expect(operations.failuresOf('g').at(-1)?.error).toMatchObject({ message: 'it was moved' });
  });

  test('how often it failed counts also where each try takes longer than anything is remembered', async () => {
    const { operations, woken, turn, world, againMs, term } = start();
    const rests: number[] = [];
    for (let count = 1; count <= 4; count++) {
      const { operation, reject } = endless();
      await operations.begin('g', 0, operation, turn, term);
      world.at += 600_000;
      if (count > 1)
        expect(operations.failuresOf('g').at(-1)).toMatchObject({ error: { message: 'no room' } });
      reject(new Error('no room'));
      await expect.poll(() => woken.length).toBe(count);
      rests.push(againMs() ?? 0);
      world.at += rests.at(-1) ?? 0;
    }
    expect(rests).toEqual([1_000, 2_000, 4_000, 8_000]);
  });

  test('what went wrong with a slot is not told for ever because something else went wrong later', async () => {
    const { operations, woken, turn, world, term } = start();
    const fail = async (what: Operation['what'], error: Error) => {
      const { operation, reject } = endless(what);
      await operations.begin('g', 0, operation, turn, term);
      reject(error);
      await expect.poll(() => woken.shift()).toBe('g');
    };
    await fail('powerOn', new Error('no room'));
    world.at += 2_000;
    await fail('resize', new InVainError(new Error('busy'), { mayPass: true }));
    expect(operations.failuresOf('g').at(-1)?.error).toMatchObject({ message: 'busy' });
    world.at += 200_000;
    expect(operations.failuresOf('g').at(-1)).toBe(undefined);
  });

  test('a task that does not end keeps its slot, and gives its turn back', async () => {
    const { operations, turn, world, term } = start();
    const { operation } = endless();
    await operations.begin('g', 0, operation, turn, term);
    expect(turn.ended).toBe(0);
    for (const goOff of world.timers) goOff();
    expect(turn.ended).toBe(1);
    expect(operations.of('g').size).toBe(1);
  });

  test('a machine that goes off again and again is switched on again later and later, which is no failure', async () => {
    const { operations, woken, turn, world, againMs, term } = start();
    const rests: number[] = [];
    for (let count = 1; count <= 8; count++) {
      const { operation, resolve, shown } = endless('powerOn');
      await operations.begin('g', 3, operation, turn, term);
      resolve();
      await expect.poll(() => woken.length).toBe(count);
      shown.is = true;
      expect(operations.of('g').size).toBe(0);
      expect([...operations.restingOf('g')]).toEqual([3]);
      rests.push(againMs() ?? 0);
      world.at += rests.at(-1) ?? 0;
      expect([...operations.restingOf('g')]).toEqual([]);
      expect(operations.failuresOf('g').at(-1)).toBe(undefined);
    }
    expect(rests).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  test('what has taken a machine down in vain is not tried again soon, and told as what it was', async () => {
    const { operations, woken, turn, againMs, term } = start();
    const { operation, reject } = endless('resize');
    await operations.begin('g', 0, operation, turn, term);
    const refusal = new FaultError('resizing', 'InvalidArgument', {}, '');
    reject(new InVainError(refusal, { mayPass: false }));
    await expect.poll(() => woken).toEqual(['g']);
    expect(againMs()).toBe(600_000);
    expect(operations.failuresOf('g').at(-1)?.error).toBe(refusal);
    // It is only not changed: it can be switched on, and removed.
    expect([...operations.inVainOf('g')]).toEqual([0]);
    expect([...operations.restingOf('g')]).toEqual([]);
    // More of the same size are wanted: those that are there are not taken down again.
    operations.forgive('g', { isSizeSame: true });
    expect([...operations.inVainOf('g')]).toEqual([0]);
    operations.forgive('g', { isSizeSame: false });
    expect([...operations.inVainOf('g')]).toEqual([]);
  });

  test('where it may pass it is tried again, less and less often', async () => {
    const { operations, woken, turn, world, againMs, term } = start();
    const rests: number[] = [];
    for (let count = 1; count <= 7; count++) {
      const { operation, reject } = endless('resize');
      await operations.begin('g', 0, operation, turn, term);
      reject(new InVainError(new Error('the datastore is busy'), { mayPass: true }));
      await expect.poll(() => woken.length).toBe(count);
      expect([...operations.inVainOf('g')]).toEqual([0]);
      rests.push(againMs() ?? 0);
      world.at += rests.at(-1) ?? 0;
      expect([...operations.inVainOf('g')]).toEqual([]);
    }
    expect(rests).toEqual([30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]);
    const { operation, resolve } = endless('resize');
    await operations.begin('g', 0, operation, turn, term);
    resolve();
    await expect.poll(() => operations.failuresOf('g').at(-1)).toBe(undefined);
  });

  test('failures that are retried in turn keep their order, so that the same one is reported', async () => {
    const { operations, woken, turn, world, term } = start();
    const fail = async (slot: number) => {
      const { operation, reject } = endless('powerOn');
      await operations.begin('g', slot, operation, turn, term);
      reject(new Error(`slot ${slot}`));
      await expect.poll(() => woken.shift()).toBe('g');
    };
    for (const slot of [2, 0, 1, 2, 0]) {
      await fail(slot);
      world.at += 1_000;
    }
    expect(operations.failuresOf('g').map(({ error }) => String(error))).toEqual(
      [2, 0, 1].map((slot) => `Error: slot ${slot}`),
    );
  });

  test('a slot is gone when its operation proves so, until its machine shows or another is made', async () => {
    const { operations, woken, turn, term } = start();
    const succeed = async (what: Operation['what'], proof?: boolean) => {
      const { operation, resolve } = endless(what);
      const provesGone = proof === undefined ? {} : { provesGone: () => proof };
      await operations.begin('g', 0, { ...operation, ...provesGone }, turn, term);
      resolve();
      await expect.poll(() => woken.shift()).toBe('g');
    };
    const gone = (...shown: number[]) => [...operations.goneOf('g', shown)];
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
    operations.forget('g');
    expect(gone()).toEqual([]);
  });

  test('each operation is logged with its vCenter task, and a failure with the time until the retry', async () => {
    const { operations, woken, turn, lines, world, term } = start();
    const failing = endless();
    await operations.begin('shop/web', 0, failing.operation, turn, term);
    world.at += 1_500;
    failing.reject(new Error('no space left'));
    await expect.poll(() => woken).toHaveLength(1);
    const { operation, resolve } = endless('remove');
    await operations.begin('shop/web', 0, operation, turn, term);
    resolve();
    await expect.poll(() => woken).toHaveLength(2);
    const fields = { vmgroup: 'shop/web', machine: 'web-0', task: 'task-1' };
    const failed = { error: 'no space left', tookMs: 1_500, retryInMs: 1_000 };
    expect(lines).toMatchObject([
      { level: 'info', msg: 'Cloning machine', ...fields },
      { level: 'warn', msg: 'Cloning a machine failed', ...fields, ...failed },
      { level: 'info', msg: 'Removing machine', ...fields },
      { level: 'info', msg: 'Removed machine', ...fields },
    ]);
  });

  test('a failure of which nothing more is heard is forgotten', async () => {
    const { operations, woken, turn, world, term } = start();
    const { operation, reject } = endless();
    await operations.begin('g', 0, operation, turn, term);
    reject(new Error('the answer was lost'));
    await expect.poll(() => woken).toEqual(['g']);
    world.at += 62_000;
    expect(operations.failuresOf('g').at(-1)).toBe(undefined);
  });

  describe('a cancelled operation sends nothing more, gives its turn back, and leaves no failure behind', () => {
    const ways = {
      'when the group is forgotten': ({ operations }) => operations.forget('g'),
      'when all groups are forgotten': ({ operations }) => operations.clear(),
      'when the term ends': ({ term }) => term.close(new OperationCancelledError()),
    } satisfies Record<string, (env: ReturnType<typeof start>) => void>;
    test.each(Object.entries(ways))('%s', async (_, cancel) => {
      const env = start();
      const { operations, woken, turn, term } = env;
      const scopes: ChangeOptions[] = [];
      const operation: Operation = {
        ...endless('remove').operation,
        run: (at, scope) => {
          scopes.push(scope);
          at(TASK);
          return new Promise((_resolve, reject) => {
            scope.signal?.addEventListener('abort', () => reject(scope.signal?.reason), { once: true });
          });
        },
      };
      await operations.begin('g', 0, operation, turn, term);
      const [scope] = scopes;
      scope?.assertLeader?.();
      cancel(env);
      await expect.poll(() => turn.ended).toBe(1);
      expect(() => scope?.assertLeader?.()).toThrow(OperationCancelledError);
      expect(woken).toEqual([]); // in an ended term its group would only be tried again, at once and without end
      expect([...operations.of('g'), ...operations.restingOf('g')]).toEqual([]);
      expect(operations.failuresOf('g')).toEqual([]);
    });
  });

  test('the fence of an operation is closed when it has ended', async () => {
    const { operations, woken, turn, term } = start();
    const { operation, resolve } = endless();
    let scope: ChangeOptions = {};
    const run: Operation['run'] = (at, given) => {
      scope = given;
      return operation.run(at, given);
    };
    await operations.begin('g', 0, { ...operation, run }, turn, term);
    resolve();
    await expect.poll(() => woken).toEqual(['g']);
    expect(scope.signal?.aborted).toBe(true);
    term.assertOpen();
  });
});
