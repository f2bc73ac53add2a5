/**
 * The run supervisor: a separate process that starts every part on behalf of a program and cleans up after it. When the
 * program ends for any reason, SIGKILL included, the IPC channel closes. The supervisor then stops all parts, newest
 * first, and removes the run's folder. The supervisor runs in its own session, so that Ctrl-C in the terminal reaches
 * only the program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core/errors';
import type { Report, Request } from './protocol.ts';
import { RunRecord } from './run-record.ts';

const STOP_GRACE_MS = 5_000;

interface Child {
  readonly process: ChildProcess;
  readonly killSignal: NodeJS.Signals;
}

const [dir] = process.argv.slice(2);
if (dir === undefined || process.send === undefined) {
  throw new Error('the run supervisor is started by the testbed and cannot be run by hand');
}

const record = new RunRecord(dir);
const children = new Map<number, Child>();
const foldersToRemove = new Set<string>();

function report(message: Report): void {
  // After the program was killed, sending fails. The `disconnect` event handles that, so the error is ignored here.
  if (process.connected) process.send?.(message, () => undefined);
}

function start(request: Extract<Request, { type: 'start' }>): void {
  const { id } = request;
  try {
    const log = openSync(request.log, 'a');
    const child = spawn(request.command, request.args, {
      cwd: request.cwd,
      env: request.env,
      stdio: ['ignore', log, log],
      detached: true, // own process group, so that the children of the part can be killed with it
      ...request.user,
    });
    closeSync(log);
    child.once('error', (error) => report({ type: 'failed', id, message: error.message }));
    if (child.pid === undefined) return;
    const { pid } = child;
    children.set(id, { process: child, killSignal: request.killSignal });
    record.add(pid);
    child.once('exit', (code, signal) => {
      children.delete(id);
      record.remove(pid);
      report({ type: 'exited', id, code, signal });
    });
    report({ type: 'started', id, pid });
  } catch (error) {
    report({ type: 'failed', id, message: messageOf(error) });
  }
}

async function stop({ process: child, killSignal }: Child): Promise<void> {
  const exited = once(child, 'exit');
  child.kill(killSignal);
  child.kill('SIGCONT'); // a part that a test has paused handles no signal except SIGKILL until it is resumed
  const timeout = new AbortController();
  await Promise.race([exited, sleep(STOP_GRACE_MS, undefined, { signal: timeout.signal })]);
  timeout.abort();
  killGroup(child.pid);
  if (child.exitCode === null && child.signalCode === null) await exited;
}

/** Kills processes that a part started and left running, such as compilers and per-connection servers. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // Ignored: the process group is empty.
  }
}

async function cleanUp(): Promise<void> {
  for (const child of [...children.values()].reverse()) await stop(child);
  for (const path of [...foldersToRemove, record.dir])
    await rm(path, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
}

process.on('message', (request: Request) => {
  if (request.type === 'start') start(request);
  else if (request.type === 'signal') children.get(request.id)?.process.kill(request.signal);
  else foldersToRemove.add(request.path);
});
process.once('disconnect', () => void cleanUp());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void cleanUp());
