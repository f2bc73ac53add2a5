import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { type Clock, type Logger, messageOf, wait } from '@vmwright/core';
import { isRecord } from '../../api/record.ts';
import { StartError } from '../errors.ts';
import type { Driver, Machine, Observation } from '../machines/driver.ts';
import { type Accel, commandFor, MachineFolder } from './command.ts';
import { askMonitor } from './monitor.ts';
import { accelFor, versionOf } from './probe.ts';
import { isMachine, pidIn, processesOf } from './processes.ts';
import { Samples } from './samples.ts';
import type { QemuSettings } from './settings.ts';

/** How long a machine may take to quit when asked to, before it is killed. */
const QUIT_MS = 5_000;
const LOOK_EVERY_MS = 50;
/** To start one, QEMU reserves its memory and opens its disks; more at a time only slow each other down. */
const STARTS_AT_A_TIME = 4;

/**
 * Real machines: a QEMU process each, which goes on when the cloud ends and is found again by its folder and its mark.
 *
 * Guarantees: never two processes for a machine (QEMU locks its pid file); after `stop` there is none.
 */
export class QemuDriver implements Driver {
  readonly name = 'qemu';
  readonly #settings: QemuSettings;
  readonly #accel: Accel;
  readonly #clock: Clock;
  readonly #samples: Samples;
  readonly #waiting: (() => void)[] = [];
  #starting = 0;

  private constructor(settings: QemuSettings, accel: Accel, clock: Clock) {
    this.#settings = settings;
    this.#accel = accel;
    this.#clock = clock;
    this.#samples = new Samples({
      clock,
      cpus: settings.cpus,
      look: (machine, signal) => this.#look(machine, signal),
    });
  }

  /** @throws StartError where machines cannot be run */
  static async open(
    settings: QemuSettings,
    { clock, log }: { clock: Clock; log: Logger },
  ): Promise<QemuDriver> {
    const { binary, dir, image } = settings;
    if (!existsSync('/proc/self/stat'))
      throw new StartError(
        'DRIVER',
        'the driver qemu needs Linux: it finds its machines, and their CPU use, in /proc',
      );
    const version = await versionOf(binary);
    if (image !== undefined && !existsSync(image))
      throw new StartError('DRIVER', `qemu.image: there is no file ${image}`);
    if (!MachineFolder.fits(dir)) {
      throw new StartError(
        'DRIVER',
        `qemu.dir: ${dir} is too long a path; a monitor's socket in it would not have the room that the system gives it`,
      );
    }
    try {
      mkdirSync(dir, { recursive: true });
    } catch (error) {
      throw new StartError('DRIVER', `qemu.dir: ${messageOf(error)}`, { cause: error });
    }
    const accel = accelFor(settings);
    log.info({ version, accel, dir }, 'machines are run by QEMU');
    return new QemuDriver(settings, accel, clock);
  }

  async start(machine: Machine, signal: AbortSignal): Promise<void> {
    const folder = new MachineFolder(this.#settings.dir, machine.id);
    await this.#slot();
    try {
      signal.throwIfAborted();
      if (this.#pidOf(machine) !== undefined) return; // started before a restart of ours
      mkdirSync(folder.path, { recursive: true });
      await promisify(execFile)(this.#settings.binary, commandFor(machine, this.#settings, this.#accel), {
        signal,
      });
    } catch (error) {
      // Of two starts the second fails; the machine is there all the same.
      if (this.#pidOf(machine) !== undefined) return;
      if (signal.aborted) throw error;
      throw new Error(`QEMU has not started: ${saidBy(error)}`, { cause: error });
    } finally {
      this.#starting -= 1;
      this.#waiting.shift()?.();
    }
  }

  async stop(machine: Machine, signal: AbortSignal): Promise<void> {
    const folder = new MachineFolder(this.#settings.dir, machine.id);
    this.#samples.drop(machine.id);
    if (existsSync(folder.monitor)) await askMonitor(folder.monitor, 'quit', signal).catch(() => undefined);
    const patience = this.#clock.now() + QUIT_MS;
    while (processesOf(machine.id).length > 0 && this.#clock.now() < patience)
      await wait(this.#clock, LOOK_EVERY_MS, signal);
    // The folder goes first: a start that a killed cloud has left behind fails without it. What has passed that by then
    // is seen among the processes.
    rmSync(folder.path, { recursive: true, force: true });
    for (;;) {
      const left = processesOf(machine.id);
      if (left.length === 0) break;
      for (const pid of left) kill(pid);
      await wait(this.#clock, LOOK_EVERY_MS, signal);
    }
    rmSync(folder.path, { recursive: true, force: true }); // its last words may have made some of it anew
  }

  observe(machine: Machine): Observation {
    return this.#samples.of(machine);
  }

  async close(): Promise<void> {
    await this.#samples.close();
  }

  async #look(machine: Machine, signal: AbortSignal) {
    const folder = new MachineFolder(this.#settings.dir, machine.id);
    const pid = this.#pidOf(machine);
    if (pid === undefined)
      return {
        pid,
        state: 'failed',
        message: `its process has ended; the console log is ${folder.console}`,
      } as const;
    const status = await askMonitor(folder.monitor, 'query-status', signal);
    const said = isRecord(status) ? String(status.status) : 'unknown';
    if (said === 'running') return { pid, state: 'running' } as const;
    if (said === 'prelaunch' || said === 'inmigrate') return { pid, state: 'building' } as const;
    return { pid, state: 'failed', message: `QEMU says that it is "${said}"` } as const;
  }

  #pidOf({ id }: Machine): number | undefined {
    const pid = pidIn(new MachineFolder(this.#settings.dir, id).pid);
    if (pid !== undefined && isMachine(pid, id)) return pid;
    return processesOf(id)[0]; // it may have been started with another `dir`
  }

  async #slot(): Promise<void> {
    if (this.#starting >= STARTS_AT_A_TIME) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#starting += 1;
  }
}

function saidBy(error: unknown): string {
  const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  return said === '' ? messageOf(error) : (said.split('\n').at(-1) ?? said);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself meanwhile.
  }
}
