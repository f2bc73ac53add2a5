/**
 * The keeper: a process beside the program that starts every part on its behalf and outlives it just long enough to
 * clear up. When the program ends, in whatever way (SIGKILL too), the channel between the two closes; the keeper then
 * ends all parts, newest first, and removes the run's folder. It runs in a session of its own, so that a Ctrl-C in the
 * terminal reaches the program alone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core/errors';
import type { Report, Request } from './protocol.ts';
import { RunRecord } from './run-record.ts';

const GRACE_MS = 5_000;

interface Child {
  readonly process: ChildProcess;
  readonly lastSignal: NodeJS.Signals;
}

const [dir] = process.argv.slice(2);
if (dir === undefined || process.send === undefined) {
  throw new Error('the keeper is started by the testbed, not by hand');
}

const record = new RunRecord(dir);
const children = new Map<number, Child>();
const folders = new Set<string>();

function report(message: Report): void {
  // A program killed a moment ago no longer reads; that is told by `disconnect`, and must not throw here before it.
  if (process.connected) process.send?.(message, () => undefined);
}

function start(request: Extract<Request, { do: 'start' }>): void {
  const { id } = request;
  try {
    const log = openSync(request.log, 'a');
    const child = spawn(request.command, request.args, {
      cwd: request.cwd,
      env: request.env,
      stdio: ['ignore', log, log],
      detached: true, // a group of its own, so that what it starts can be ended with it
      ...request.user,
    });
    closeSync(log);
    child.once('error', (error) => report({ is: 'failed', id, message: error.message }));
    if (child.pid === undefined) return;
    const { pid } = child;
    children.set(id, { process: child, lastSignal: request.lastSignal });
    record.add(pid);
    child.once('exit', (code, signal) => {
      children.delete(id);
      record.remove(pid);
      report({ is: 'exited', id, code, signal });
    });
    report({ is: 'started', id, pid });
  } catch (error) {
    report({ is: 'failed', id, message: messageOf(error) });
  }
}

async function end({ process: child, lastSignal }: Child): Promise<void> {
  const exited = once(child, 'exit');
  child.kill(lastSignal);
  child.kill('SIGCONT'); // a part that a test paused takes no signal but SIGKILL until it goes on
  const giveUp = new AbortController();
  await Promise.race([exited, sleep(GRACE_MS, undefined, { signal: giveUp.signal })]);
  giveUp.abort();
  killGroup(child.pid);
  if (child.exitCode === null && child.signalCode === null) await exited;
}

/** What a part has started and not taken along: compilers, servers of one connection. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left in it.
  }
}

async function clearUp(): Promise<void> {
  for (const child of [...children.values()].reverse()) await end(child);
  for (const path of [...folders, record.dir])
    await rm(path, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
}

process.on('message', (request: Request) => {
  if (request.do === 'start') start(request);
  else if (request.do === 'signal') children.get(request.id)?.process.kill(request.signal);
  else folders.add(request.path);
});
process.once('disconnect', () => void clearUp());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void clearUp());
