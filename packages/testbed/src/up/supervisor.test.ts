import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import type { Exit } from '../process/protocol.ts';
import { type SupervisedPart, Supervisor } from './supervisor.ts';

const KILLED: Exit = { code: null, signal: 'SIGKILL' };
const STOPPED: Exit = { code: 0, signal: null };

/** Fake part without a process. */
class FakePart implements SupervisedPart {
  readonly name: string;
  readonly log = '/run/part.log';
  starts = 0;
  /** Errors of the next starts, in order; further starts succeed. */
  readonly startErrors: string[] = [];
  #exit = Promise.withResolvers<Exit>();

  constructor(name: string) {
    this.name = name;
  }

  exit(exit: Exit): void {
    this.#exit.resolve(exit);
  }

  exited(): Promise<Exit> {
    return this.#exit.promise;
  }

  async start(): Promise<void> {
    this.starts += 1;
    const failure = this.startErrors.shift();
    if (failure !== undefined) throw new Error(failure);
    this.#exit = Promise.withResolvers();
  }

  async stop(): Promise<void> {
    this.exit(STOPPED);
  }

  async logTail(): Promise<string> {
    return 'first line\nlast line';
  }
}

function supervise(...parts: readonly FakePart[]) {
  const printed: string[] = [];
  const lines = new PassThrough({ objectMode: true });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const supervisor = new Supervisor({
    parts,
    signal: stop.signal,
    backoffMs: 1,
    print: (line) => {
      printed.push(line);
      lines.emit('line');
    },
  });
  /** Waits until the line has been printed. */
  const waitForLine = async (line: string, times = 1) => {
    while (printed.filter((each) => each === line).length < times) await once(lines, 'line');
  };
  return { supervisor, printed, waitForLine };
}

test('a part that exits is restarted and the tail of its log is printed', async () => {
  const part = new FakePart('cloud');
  const { printed, waitForLine } = supervise(part);
  part.exit(KILLED);
  await waitForLine('cloud is running again');
  expect(printed).toEqual([
    'cloud exited (SIGKILL), restarting in 0.001 s. Last lines of /run/part.log:',
    '  first line',
    '  last line',
    'cloud is running again',
  ]);
});

test('the delay between restarts grows exponentially while a part fails to start', async () => {
  const part = new FakePart('cloud');
  part.startErrors.push('cloud exited before it was ready', 'cloud exited before it was ready');
  const { printed, waitForLine } = supervise(part);
  part.exit({ code: 1, signal: null });
  await waitForLine('cloud is running again');
  expect(printed.filter((line) => line.includes('restarting'))).toEqual([
    'cloud exited (exit code 1), restarting in 0.001 s. Last lines of /run/part.log:',
    'cloud exited (exit code 1), restarting in 0.002 s. Last lines of /run/part.log:',
    'cloud exited (exit code 1), restarting in 0.004 s. Last lines of /run/part.log:',
  ]);
});

test('restart stops the part gracefully and resolves when the part is ready again', async () => {
  const [cloud, operator] = [new FakePart('cloud'), new FakePart('operator')];
  const { supervisor, printed } = supervise(cloud, operator);
  await supervisor.restart('operator');
  expect([cloud.starts, operator.starts]).toEqual([0, 1]);
  expect(printed).not.toContainEqual(expect.stringContaining('exited'));
});

test('a failed restart rejects and the supervisor keeps trying', async () => {
  const part = new FakePart('cloud');
  part.startErrors.push('cloud is not ready');
  const { supervisor, waitForLine } = supervise(part);
  await expect(supervisor.restart('cloud')).rejects.toThrow('cloud is not ready');
  await waitForLine('cloud is running again');
});

test('a stopped part stays stopped until it is restarted', async () => {
  const part = new FakePart('cloud');
  const { supervisor, waitForLine } = supervise(part);
  await supervisor.stop('cloud');
  await waitForLine('cloud is stopped; start it with: make restart PART=cloud');
  await supervisor.stop('cloud');
  expect(part.starts).toBe(0);
  await supervisor.restart('cloud');
  expect(part.starts).toBe(1);
});

test('an unknown part is rejected with the names of the parts', async () => {
  const { supervisor } = supervise(new FakePart('cloud'), new FakePart('etcd'));
  await expect(supervisor.restart('claud')).rejects.toThrow(
    'unknown part "claud"; the parts are cloud, etcd',
  );
});
