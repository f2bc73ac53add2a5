import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { Part } from './part.ts';
import { processIdentity } from './process-identity.ts';
import { until } from './until.ts';

/** A program that starts two parts by the testbed's own means, tells of them, and waits. */
interface Runner {
  readonly process: ChildProcess;
  readonly keeper: number;
  readonly parts: readonly number[];
  readonly dir: string;
}

const runners: ChildProcess[] = [];
afterEach(() => {
  for (const runner of runners.splice(0)) runner.kill('SIGKILL');
});

async function startRunner(tmp = tmpdir()): Promise<Runner> {
  const script = fileURLToPath(new URL('../../test/runner.ts', import.meta.url));
  const child = spawn(process.execPath, [script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: tmp },
  });
  runners.push(child);
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const told: unknown = JSON.parse(String(line));
  if (!isTold(told)) throw new Error(`the runner said ${line}`);
  return { process: child, ...told };
}

function isTold(value: unknown): value is Omit<Runner, 'process'> {
  return (
    typeof value === 'object' && value !== null && 'keeper' in value && 'parts' in value && 'dir' in value
  );
}

function leftOf({ keeper, parts, dir }: Runner) {
  const alive = [keeper, ...parts].filter((pid) => processIdentity(pid) !== undefined);
  return { alive, dir: existsSync(dir) };
}

async function expectNothingLeft(runner: Runner): Promise<void> {
  await until(async () => leftOf(runner).alive.length === 0 && !leftOf(runner).dir, {
    what: 'nothing is left',
  });
}

describe('after the program that started them has ended, no process and no folder is left', () => {
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    test(`by ${signal}`, async () => {
      const runner = await startRunner();
      expect(leftOf(runner)).toEqual({ alive: [runner.keeper, ...runner.parts], dir: true });
      runner.process.kill(signal);
      await expectNothingLeft(runner);
    });
  }

  test('while a part is paused', async () => {
    const runner = await startRunner();
    for (const pid of runner.parts) process.kill(pid, 'SIGSTOP');
    runner.process.kill('SIGKILL');
    await expectNothingLeft(runner);
  });

  test('together with its keeper, once the next run starts', async () => {
    // A folder of its own: any other test's first part would be that next run, at any moment.
    const tmp = mkdtempSync(join(tmpdir(), 'vmwright-test-'));
    onTestFinished(() => rmSync(tmp, { recursive: true }));
    const runner = await startRunner(tmp);
    process.kill(runner.keeper, 'SIGKILL');
    runner.process.kill('SIGKILL');
    await until(async () => processIdentity(runner.keeper) === undefined, { what: 'the keeper is gone' });
    expect(leftOf(runner)).toEqual({ alive: [...runner.parts], dir: true });
    const next = await startRunner(tmp);
    await expectNothingLeft(runner);
    expect(leftOf(next)).toEqual({ alive: [next.keeper, ...next.parts], dir: true });
    next.process.kill('SIGKILL');
    await expectNothingLeft(next);
  });
});

describe('a part', () => {
  const options = { name: 'sleeper', command: 'sleep', args: ['1000'], ready: async () => true };

  test('is gone with its folder when disposed', async () => {
    const part = await Part.start(options);
    const { pid, dir } = part;
    await part[Symbol.asyncDispose]();
    expect(processIdentity(pid)).toBeUndefined();
    expect(existsSync(dir)).toBe(false);
    expect(part.running).toBe(false);
  });

  test('can be killed and started again', async () => {
    await using part = await Part.start(options);
    const first = part.pid;
    await part.kill();
    expect(part.running).toBe(false);
    await part.start();
    expect(part.pid).not.toBe(first);
  });

  test('that stops itself is known to be stopped', async () => {
    await using part = await Part.start({ ...options, args: ['0.2'] });
    expect(await part.exited()).toEqual({ code: 0, signal: null });
    expect(part.running).toBe(false);
  });

  test('that dies before it is ready says so with the end of its log', async () => {
    const start = Part.start({
      ...options,
      name: 'doomed',
      command: 'sh',
      args: ['-c', 'echo the disk is on fire; exit 3'],
      ready: async () => false,
    });
    await expect(start).rejects.toThrow(
      /doomed ended before it was ready \(exit code 3\).*the disk is on fire/s,
    );
  });

  test('whose program is missing says so', async () => {
    const start = Part.start({ ...options, name: 'ghost', command: '/nowhere/ghost' });
    await expect(start).rejects.toThrow(/ghost cannot be started: .*ENOENT/);
  });

  test('that ignores its stop signal is killed', async () => {
    const deaf = ['-c', 'trap "" TERM; while :; do sleep 1; done'];
    await using part = await Part.start({ ...options, command: 'sh', args: deaf, stopGraceMs: 300 });
    const { pid } = part;
    await part.stop();
    expect(processIdentity(pid)).toBeUndefined();
  });
});
