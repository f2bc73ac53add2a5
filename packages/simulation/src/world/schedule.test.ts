import { describe, expect, test } from 'vitest';
import { Choices } from './choices.ts';
import { Schedule } from './schedule.ts';

const scheduleOf = (seed: number) => new Schedule(Choices.seeded(seed));

describe('Schedule', () => {
  test('a schedule runs events in time order and sets `now` to the time of each', async () => {
    const schedule = scheduleOf(1);
    const seen: number[] = [];
    for (const ms of [30, 10, 20]) schedule.after(ms, () => seen.push(schedule.now));
    await schedule.run({ until: 25 });
    expect(seen).toEqual([10, 20]);
    expect(schedule.now).toBe(25);
    await schedule.run({ until: Number.POSITIVE_INFINITY });
    expect(seen).toEqual([10, 20, 30]);
  });

  test('a schedule runs everything that an event causes before the next event', async () => {
    const schedule = scheduleOf(1);
    const seen: string[] = [];
    const chain = async (name: string) => {
      for (let i = 0; i < 50; i++) await undefined;
      seen.push(name);
    };
    schedule.after(1, () => void chain('first'));
    schedule.after(1.001, () => void chain('second'));
    schedule.after(1.002, () => seen.push('third'));
    await schedule.run({ until: 10 });
    expect(seen).toEqual(['first', 'second', 'third']);
  });

  test('a schedule runs simultaneous events in an order determined by the seed', async () => {
    const orderOf = async (seed: number) => {
      const schedule = scheduleOf(seed);
      let order = '';
      for (const name of 'abcd') schedule.after(5, () => (order += name));
      await schedule.run({ until: 10 });
      return order;
    };
    const orders = await Array.fromAsync({ length: 30 }, (_, seed) => orderOf(seed));
    expect(await Array.fromAsync({ length: 30 }, (_, seed) => orderOf(seed))).toEqual(orders);
    expect(new Set(orders).size).toBeGreaterThan(10);
  });

  test('a schedule skips cancelled events', async () => {
    const schedule = scheduleOf(1);
    let done = false;
    const planned = schedule.after(5, () => (done = true));
    schedule.after(1, () => (planned.cancelled = true));
    await schedule.run({ until: 10 });
    expect(done).toBe(false);
  });

  test('a run ends when `done` returns true or no event is left', async () => {
    const schedule = scheduleOf(1);
    let count = 0;
    const again = () => {
      count += 1;
      schedule.after(1, again);
    };
    again();
    await schedule.run({ until: 1_000, done: () => count === 300 });
    expect(count).toBe(300);
    await scheduleOf(1).run({ until: Number.POSITIVE_INFINITY });
  });
});

describe('Schedule.run', () => {
  test('Schedule.run rejects with the error that an event throws', async () => {
    const schedule = scheduleOf(1);
    schedule.after(1, () => {
      throw new Error('thrown');
    });
    await expect(schedule.run({ until: 10 })).rejects.toThrow('thrown');
  });

  test('Schedule.run rejects if a promise rejection is still unhandled when its event ends', async () => {
    const schedule = scheduleOf(1);
    let rejected: Promise<never> | undefined;
    schedule.after(1, () => {
      rejected = Promise.reject(new Error('not caught'));
    });
    schedule.after(2, () => void rejected?.catch(() => undefined));
    await expect(schedule.run({ until: 10 })).rejects.toThrow('not caught');
    expect(schedule.now).toBeLessThan(2);
  });

  test('Schedule.run rejects with the error that an abort listener throws', async () => {
    const schedule = scheduleOf(1);
    schedule.after(1, () => {
      const stop = new AbortController();
      stop.signal.addEventListener('abort', () => {
        throw new Error('in a listener');
      });
      stop.abort();
    });
    await expect(schedule.run({ until: 10 })).rejects.toThrow('in a listener');
  });

  test('Schedule.run rejects right after the event that makes a function registered with check() throw', async () => {
    const schedule = scheduleOf(1);
    let value = 0;
    schedule.check(() => {
      if (value > 2) throw new Error(`value is ${value} at ${schedule.now} ms`);
    });
    for (let ms = 1; ms < 10; ms++)
      schedule.after(ms, () => {
        value = ms;
      });
    await expect(schedule.run({ until: 10 })).rejects.toThrow('value is 3 at 3 ms');
  });
});
