import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import type { Exit } from '../process/protocol.ts';
import { type SupervisedPart, Supervisor } from './supervisor.ts';

const KILLED: Exit = { code: null, signal: 'SIGKILL' };
const STOPPED: Exit = { code: 0, signal: null };

/** A part without a process. */
class FakePart implements SupervisedPart {
  readonly name: string;
  readonly log = '/run/part.log';
  starts = 0;
  /** Ends of the next starts; a start without one serves. */
  readonly failing: string[] = [];
  #exit = Promise.withResolvers<Exit>();

  constructor(name: string) {
    this.name = name;
  }

  end(exit: Exit): void {
    this.#exit.resolve(exit);
  }

  exited(): Promise<Exit> {
    return this.#exit.promise;
  }

  async start(): Promise<void> {
    this.starts += 1;
    const failure = this.failing.shift();
    if (failure !== undefined) throw new Error(failure);
    this.#exit = Promise.withResolvers();
  }

  async stop(): Promise<void> {
    this.end(STOPPED);
  }

  async logTail(): Promise<string> {
    return 'first\nlast words';
  }
}

function supervise(...parts: readonly FakePart[]) {
  const said: string[] = [];
  const lines = new PassThrough({ objectMode: true });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const supervisor = new Supervisor({
    parts,
    signal: stop.signal,
    backoffMs: 1,
    say: (line) => {
      said.push(line);
      lines.emit('line');
    },
  });
  /** Waits for a line. */
  const saying = async (line: string, times = 1) => {
    while (said.filter((each) => each === line).length < times) await once(lines, 'line');
  };
  return { supervisor, said, saying };
}

test('a part that ends by itself is restarted, with the end of its log', async () => {
  const part = new FakePart('cloud');
  const { said, saying } = supervise(part);
  part.end(KILLED);
  await saying('cloud is up again');
  expect(said).toEqual([
    'cloud ended (SIGKILL), restarting it in 0.001 s. The end of /run/part.log:',
    '  first',
    '  last words',
    'cloud is up again',
  ]);
});

test('a part that cannot be started is tried again, each time after twice as long', async () => {
  const part = new FakePart('cloud');
  part.failing.push('cloud ended before it was ready', 'cloud ended before it was ready');
  const { said, saying } = supervise(part);
  part.end({ code: 1, signal: null });
  await saying('cloud is up again');
  expect(said.filter((line) => line.includes('restarting'))).toEqual([
    'cloud ended (exit code 1), restarting it in 0.001 s. The end of /run/part.log:',
    'cloud ended (exit code 1), restarting it in 0.002 s. The end of /run/part.log:',
    'cloud ended (exit code 1), restarting it in 0.004 s. The end of /run/part.log:',
  ]);
});

test('restart stops the part in order and resolves when it serves again', async () => {
  const [cloud, operator] = [new FakePart('cloud'), new FakePart('operator')];
  const { supervisor, said } = supervise(cloud, operator);
  await supervisor.restart('operator');
  expect([cloud.starts, operator.starts]).toEqual([0, 1]);
  expect(said).not.toContainEqual(expect.stringContaining('ended'));
});

test('a restart that fails is reported to its caller, and the part is tried again', async () => {
  const part = new FakePart('cloud');
  part.failing.push('cloud is not ready');
  const { supervisor, saying } = supervise(part);
  await expect(supervisor.restart('cloud')).rejects.toThrow('cloud is not ready');
  await saying('cloud is up again');
});

test('a part that was stopped stays down until it is restarted', async () => {
  const part = new FakePart('cloud');
  const { supervisor, saying } = supervise(part);
  await supervisor.stop('cloud');
  await saying('cloud is stopped. To start it: make restart PART=cloud');
  await supervisor.stop('cloud');
  expect(part.starts).toBe(0);
  await supervisor.restart('cloud');
  expect(part.starts).toBe(1);
});

test('an unknown part is rejected with the names of the parts', async () => {
  const { supervisor } = supervise(new FakePart('cloud'), new FakePart('etcd'));
  await expect(supervisor.restart('claud')).rejects.toThrow(
    'there is no part "claud"; the parts are cloud, etcd',
  );
});
