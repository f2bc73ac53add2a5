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

/** A program that starts two parts through the testbed, prints their process ids, and waits. */
interface Runner {
  readonly process: ChildProcess;
  readonly supervisor: number;
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
  const ids: unknown = JSON.parse(String(line));
  if (!isRunnerIds(ids)) throw new Error(`unexpected output of the runner: ${line}`);
  return { process: child, ...ids };
}

function isRunnerIds(value: unknown): value is Omit<Runner, 'process'> {
  return (
    typeof value === 'object' && value !== null && 'supervisor' in value && 'parts' in value && 'dir' in value
  );
}

function remainsOf({ supervisor, parts, dir }: Runner) {
  const alive = [supervisor, ...parts].filter((pid) => processIdentity(pid) !== undefined);
  return { alive, dir: existsSync(dir) };
}

async function expectNothingLeft(runner: Runner): Promise<void> {
  await until(async () => remainsOf(runner).alive.length === 0 && !remainsOf(runner).dir, {
    what: 'every process and folder is gone',
  });
}

describe('every process and folder is removed', () => {
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    test(`every process and folder is removed when the program ends with ${signal}`, async () => {
      const runner = await startRunner();
      expect(remainsOf(runner)).toEqual({ alive: [runner.supervisor, ...runner.parts], dir: true });
      runner.process.kill(signal);
      await expectNothingLeft(runner);
    });
  }

  test('every process and folder is removed when the program is killed while the processes that it started are paused', async () => {
    const runner = await startRunner();
    for (const pid of runner.parts) process.kill(pid, 'SIGSTOP');
    runner.process.kill('SIGKILL');
    await expectNothingLeft(runner);
  });

  test('the next run removes the processes and folders of a program that was killed together with its supervisor', async () => {
    // Uses a private TMPDIR. Otherwise, a concurrent test that starts its first part would act as the next run.
    const tmp = mkdtempSync(join(tmpdir(), 'vmwright-test-'));
    onTestFinished(() => rmSync(tmp, { recursive: true }));
    const runner = await startRunner(tmp);
    process.kill(runner.supervisor, 'SIGKILL');
    runner.process.kill('SIGKILL');
    await until(async () => processIdentity(runner.supervisor) === undefined, {
      what: 'the run supervisor exits',
    });
    expect(remainsOf(runner)).toEqual({ alive: [...runner.parts], dir: true });
    const next = await startRunner(tmp);
    await expectNothingLeft(runner);
    expect(remainsOf(next)).toEqual({ alive: [next.supervisor, ...next.parts], dir: true });
    next.process.kill('SIGKILL');
    await expectNothingLeft(next);
  });
});

describe('parts', () => {
  const options = { name: 'sleeper', command: 'sleep', args: ['1000'], ready: async () => true };

  test('disposing of a part, which is a program that the testbed runs, kills it and removes its folder', async () => {
    const part = await Part.start(options);
    const { pid, dir } = part;
    await part[Symbol.asyncDispose]();
    expect(processIdentity(pid)).toBeUndefined();
    expect(existsSync(dir)).toBe(false);
    expect(part.running).toBe(false);
  });

  test('a part can be killed and started again', async () => {
    await using part = await Part.start(options);
    const first = part.pid;
    await part.kill();
    expect(part.running).toBe(false);
    await part.start();
    expect(part.pid).not.toBe(first);
  });

  test('a part is reported as not running after it exits by itself', async () => {
    await using part = await Part.start({ ...options, args: ['0.2'] });
    expect(await part.exited()).toEqual({ code: 0, signal: null });
    expect(part.running).toBe(false);
  });

  test('the error contains the tail of the log when a part exits before it is ready', async () => {
    const start = Part.start({
      ...options,
      name: 'doomed',
      command: 'sh',
      args: ['-c', 'echo the disk is on fire; exit 3'],
      ready: async () => false,
    });
    await expect(start).rejects.toThrow(
      /doomed exited before it was ready \(exit code 3\).*the disk is on fire/s,
    );
  });

  test('a part with a missing executable fails to start, and the error contains ENOENT', async () => {
    const start = Part.start({ ...options, name: 'ghost', command: '/nowhere/ghost' });
    await expect(start).rejects.toThrow(/ghost cannot be started: .*ENOENT/);
  });

  test('a part is killed if it ignores its stop signal', async () => {
    const ignoresTerm = ['-c', 'trap "" TERM; while :; do sleep 1; done'];
    await using part = await Part.start({ ...options, command: 'sh', args: ignoresTerm, stopGraceMs: 300 });
    const { pid } = part;
    await part.stop();
    expect(processIdentity(pid)).toBeUndefined();
  });
});
