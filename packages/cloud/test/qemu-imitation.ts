#!/usr/bin/env node
/**
 * An imitation of QEMU, for where there is none: it takes the arguments that the driver gives, goes to the background,
 * locks its pid file, writes to its console and speaks as much QMP as the driver does. It runs no machine.
 *
 * QEMU_IMITATION: `dies` ends soon after its start, `refuses` says what QEMU says of a disk it cannot read, `deaf` does
 * not quit when asked to, `paused` is a machine that does not run.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, copyFileSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';

const args = process.argv.slice(2);
/** A test that was killed leaves it behind, and nobody else would end it. */
const LONGEST_LIFE_MS = 120_000;
const behaviour = process.env.QEMU_IMITATION ?? '';
const after = (name: string) => args[args.indexOf(name) + 1] ?? '';

function fail(message: string): never {
  process.stderr.write(`qemu-imitation: ${message}\n`);
  process.exit(1);
}

if (args.includes('--version')) {
  process.stdout.write('QEMU emulator version 0.0 (an imitation)\n');
} else if (after('-qmp') === 'stdio') {
  fail('KVM is not imitated');
} else if (args.includes('-daemonize')) {
  if (behaviour === 'refuses') fail('-drive: Could not open the disk');
  const rest = args.filter((arg) => arg !== '-daemonize');
  const child = spawn(process.execPath, [import.meta.filename, ...rest], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  child.once('message', (message) => {
    child.disconnect();
    child.unref();
    if (message !== 'ready') fail(String(message));
  });
  child.once('exit', () => fail('it has ended'));
} else {
  run();
}

function run(): void {
  try {
    claim(after('-pidfile'));
  } catch {
    process.send?.('cannot create PID file: Cannot lock pid file');
    return;
  }
  const [, console = ''] = /path=([^,]+)/.exec(after('-chardev')) ?? [];
  appendFileSync(console, `booted ${after('-name')}\n`);
  const [, socket = ''] = /^unix:([^,]+)/.exec(after('-qmp')) ?? [];
  const status = behaviour === 'paused' ? 'paused' : 'running';
  const monitor = createServer((connection) => {
    connection.on('error', () => undefined);
    connection.write('{"QMP": {"version": {}, "capabilities": []}}\n');
    connection.on('data', (bytes) => {
      for (const line of String(bytes).trim().split('\n')) {
        const { execute } = JSON.parse(line);
        connection.write('{"event": "SOMETHING", "data": {}}\n');
        connection.write(`${JSON.stringify({ return: execute === 'query-status' ? { status } : {} })}\n`);
        if (execute === 'quit' && behaviour !== 'deaf') process.exit(0);
      }
    });
  });
  process.on('SIGTERM', () => undefined);
  setTimeout(() => process.exit(1), LONGEST_LIFE_MS);
  monitor.listen(socket, () => {
    process.send?.('ready', () => process.disconnect());
    if (behaviour === 'dies') setTimeout(() => process.exit(1), 300);
    else busy();
  });
}

/** As QEMU does by a lock: only one process has the file. It comes with its content, so that nobody sees it without. */
function claim(file: string): void {
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
function busy(): void {
  const end = performance.now() + 30;
  while (performance.now() < end);
  setTimeout(busy, 60);
}
