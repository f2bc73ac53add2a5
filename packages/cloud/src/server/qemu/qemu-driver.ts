import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Logger } from '@vmwright/core';
import { type Clock, messageOf, wait } from '@vmwright/core';
import { isRecord } from '../../api/record.ts';
import { StartError } from '../errors.ts';
import type { Driver, Machine, Observation } from '../machines/driver.ts';
import { type Accel, MachineDir, machineArgs } from './command.ts';
import { accelFor, versionOf } from './probe.ts';
import { isProcessOf, processesOf, readPid } from './processes.ts';
import { executeQmp } from './qmp.ts';
import { Sampler } from './sampler.ts';
import type { QemuSettings } from './settings.ts';

/** How long QEMU may take to quit before it is killed. */
const QUIT_TIMEOUT_MS = 5_000;
const POLL_INTERVAL_MS = 50;
/** Maximum number of concurrent starts. More would not save time: each start reserves memory and opens disks. */
const MAX_CONCURRENT_STARTS = 4;

/**
 * Driver that runs a QEMU process per machine. The processes keep running when the cloud exits. The driver finds them
 * again by their pid file and command line.
 *
 * Guarantees: at most one process runs a machine, because QEMU locks the pid file. After `stop`, no process runs it.
 */
export class QemuDriver implements Driver {
  readonly name = 'qemu';
  readonly #settings: QemuSettings;
  readonly #accel: Accel;
  readonly #clock: Clock;
  readonly #sampler: Sampler;
  readonly #waiting: (() => void)[] = [];
  #starting = 0;

  private constructor(settings: QemuSettings, accel: Accel, clock: Clock) {
    this.#settings = settings;
    this.#accel = accel;
    this.#clock = clock;
    this.#sampler = new Sampler({
      clock,
      cpus: settings.cpus,
      inspect: (machine, signal) => this.#inspect(machine, signal),
    });
  }

  /** @throws StartError if machines cannot run on this host */
  static async open(
    settings: QemuSettings,
    { clock, log }: { clock: Clock; log: Logger },
  ): Promise<QemuDriver> {
    const { binary, dir, image } = settings;
    if (!existsSync('/proc/self/stat'))
      throw new StartError(
        'DRIVER',
        'the qemu driver needs Linux: it reads processes and CPU times from /proc',
      );
    const version = await versionOf(binary);
    if (image !== undefined && !existsSync(image))
      throw new StartError('DRIVER', `qemu.image: ${image} does not exist`);
    if (!MachineDir.fits(dir)) {
      throw new StartError(
        'DRIVER',
        `qemu.dir: the path ${dir} is too long for a Unix socket in it; use a shorter path`,
      );
    }
    try {
      mkdirSync(dir, { recursive: true });
    } catch (error) {
      throw new StartError('DRIVER', `qemu.dir: ${messageOf(error)}`, { cause: error });
    }
    const accel = accelFor(settings);
    log.info({ version, accel, dir }, 'Using QEMU');
    return new QemuDriver(settings, accel, clock);
  }

  async start(machine: Machine, signal: AbortSignal): Promise<void> {
    const files = new MachineDir(this.#settings.dir, machine.id);
    await this.#acquireStartSlot();
    try {
      signal.throwIfAborted();
      if (this.#pidOf(machine) !== undefined) return; // the machine was started before a restart of this process
      mkdirSync(files.path, { recursive: true });
      await promisify(execFile)(this.#settings.binary, machineArgs(machine, this.#settings, this.#accel), {
        signal,
      });
    } catch (error) {
      // QEMU also fails if a concurrent start of the same machine has succeeded. In that case, the machine is running.
      if (this.#pidOf(machine) !== undefined) return;
      if (signal.aborted) throw error;
      throw new Error(`QEMU failed to start: ${stderrOf(error)}`, { cause: error });
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#starting -= 1;
      else next(); // the next waiting start uses the slot, so `#starting` stays the same
    }
  }

  async stop(machine: Machine, signal: AbortSignal): Promise<void> {
    const files = new MachineDir(this.#settings.dir, machine.id);
    this.#sampler.stop(machine.id);
    if (existsSync(files.qmpSocket)) await executeQmp(files.qmpSocket, 'quit', signal).catch(() => undefined);
    const deadline = this.#clock.now() + QUIT_TIMEOUT_MS;
    while (processesOf(machine.id).length > 0 && this.#clock.now() < deadline)
      await wait(this.#clock, POLL_INTERVAL_MS, signal);
    // An earlier cloud process may have begun a start that is still in progress. Without the directory, that start
    // fails. If it has already created a QEMU process, the loop below kills the process.
    rmSync(files.path, { recursive: true, force: true });
    for (;;) {
      const pids = processesOf(machine.id);
      if (pids.length === 0) break;
      for (const pid of pids) kill(pid);
      await wait(this.#clock, POLL_INTERVAL_MS, signal);
    }
    rmSync(files.path, { recursive: true, force: true }); // a dying process may have recreated files
  }

  observe(machine: Machine): Observation {
    return this.#sampler.get(machine);
  }

  async close(): Promise<void> {
    await this.#sampler.close();
  }

  async #inspect(machine: Machine, signal: AbortSignal) {
    const files = new MachineDir(this.#settings.dir, machine.id);
    const pid = this.#pidOf(machine);
    if (pid === undefined)
      return {
        pid,
        state: 'failed',
        message: `the QEMU process has exited; see the console log ${files.console}`,
      } as const;
    const status = await executeQmp(files.qmpSocket, 'query-status', signal);
    const runState = isRecord(status) ? String(status.status) : 'unknown';
    if (runState === 'running') return { pid, state: 'running' } as const;
    if (runState === 'prelaunch' || runState === 'inmigrate') return { pid, state: 'building' } as const;
    return { pid, state: 'failed', message: `QEMU reports the run state "${runState}"` } as const;
  }

  #pidOf({ id }: Machine): number | undefined {
    const pid = readPid(new MachineDir(this.#settings.dir, id).pid);
    if (pid !== undefined && isProcessOf(pid, id)) return pid;
    return processesOf(id)[0]; // the machine may have been started with another `dir`
  }

  async #acquireStartSlot(): Promise<void> {
    if (this.#starting < MAX_CONCURRENT_STARTS) this.#starting += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

/** Returns the last line that a failed command wrote to standard error, or else the error message. */
function stderrOf(error: unknown): string {
  const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  return stderr === '' ? messageOf(error) : (stderr.split('\n').at(-1) ?? stderr);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already exited.
  }
}
