#!/usr/bin/env node
/**
 * Fake QEMU for hosts without QEMU. It runs no machine. It accepts the arguments of the driver, daemonizes, locks its
 * pid file, writes to its console and implements the QMP commands that the driver uses.
 *
 * FAKE_QEMU selects a behaviour:
 * - `exits`: exits soon after the start
 * - `fails`: fails to start, with QEMU's error for an unreadable disk
 * - `ignores-quit`: does not quit
 * - `paused`: reports a paused machine
 */
import { spawn } from 'node:child_process';
import { appendFileSync, copyFileSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';

const args = process.argv.slice(2);
/** The process exits after this time, in case a killed test has left it running. */
const MAX_LIFETIME_MS = 120_000;
const behaviour = process.env.FAKE_QEMU ?? '';
const argumentOf = (name: string) => args[args.indexOf(name) + 1] ?? '';

function fail(message: string): never {
  process.stderr.write(`fake-qemu: ${message}\n`);
  process.exit(1);
}

if (args.includes('--version')) {
  process.stdout.write('QEMU emulator version 0.0 (fake)\n');
} else if (argumentOf('-qmp') === 'stdio') {
  fail('KVM is not supported');
} else if (args.includes('-daemonize')) {
  if (behaviour === 'fails') fail('-drive: Could not open the disk');
  const rest = args.filter((arg) => arg !== '-daemonize');
  const child = spawn(process.execPath, [import.meta.filename, ...rest], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  child.once('message', (message) => {
    child.removeAllListeners('exit'); // from now on, an exit of the child is not a failed start
    child.disconnect();
    child.unref();
    if (message !== 'ready') fail(String(message));
  });
  child.once('exit', () => fail('the process exited'));
} else {
  run();
}

function run(): void {
  try {
    acquirePidFile(argumentOf('-pidfile'));
  } catch {
    process.send?.('cannot create PID file: Cannot lock pid file');
    return;
  }
  const [, console = ''] = /path=([^,]+)/.exec(argumentOf('-chardev')) ?? [];
  appendFileSync(console, `booted ${argumentOf('-name')}\n`);
  const [, socket = ''] = /^unix:([^,]+)/.exec(argumentOf('-qmp')) ?? [];
  const status = behaviour === 'paused' ? 'paused' : 'running';
  const monitor = createServer((connection) => {
    connection.on('error', () => undefined);
    connection.write('{"QMP": {"version": {}, "capabilities": []}}\n');
    connection.on('data', (bytes) => {
      for (const line of String(bytes).trim().split('\n')) {
        const { execute } = JSON.parse(line);
        connection.write('{"event": "SOMETHING", "data": {}}\n');
        connection.write(`${JSON.stringify({ return: execute === 'query-status' ? { status } : {} })}\n`);
        if (execute === 'quit' && behaviour !== 'ignores-quit') process.exit(0);
      }
    });
  });
  process.on('SIGTERM', () => undefined);
  setTimeout(() => process.exit(1), MAX_LIFETIME_MS);
  monitor.listen(socket, () => {
    process.send?.('ready', () => process.disconnect());
    if (behaviour === 'exits') setTimeout(() => process.exit(1), 300);
    else useCpu();
  });
}

/**
 * Creates the pid file. Throws if a pid file exists and names a process that is alive. The real QEMU fails to lock the
 * file in that case. A new pid file is a link to a complete file, so that readers never see an empty file.
 */
function acquirePidFile(file: string): void {
  const own = `${file}.${process.pid}`;
  writeFileSync(own, `${process.pid}\n`);
  try {
    linkSync(own, file);
  } catch (error) {
    if (isAlive(Number(readFileSync(file, 'utf8')))) throw error;
    copyFileSync(own, file);
  } finally {
    rmSync(own);
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Uses about a third of a CPU. */
function useCpu(): void {
  const end = performance.now() + 30;
  while (performance.now() < end);
  setTimeout(useCpu, 60);
}
