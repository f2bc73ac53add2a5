import { join } from 'node:path';
import type { Machine } from '../machines/driver.ts';
import type { QemuSettings } from './settings.ts';

export type Accel = 'kvm' | 'tcg';

/** Maximum length of a Unix socket path on Linux. Checked at startup, because QEMU's own error is unclear. */
const MAX_SOCKET_PATH_BYTES = 107;

/** Paths of the files of a machine. */
export class MachineDir {
  readonly path: string;

  constructor(dir: string, id: string) {
    this.path = join(dir, id);
  }

  get pid(): string {
    return join(this.path, 'pid');
  }

  get qmpSocket(): string {
    return join(this.path, 'qmp.sock');
  }

  get console(): string {
    return join(this.path, 'console.log');
  }

  /** Returns whether the paths of QMP sockets in this directory are short enough. */
  static fits(dir: string): boolean {
    const socket = new MachineDir(dir, '00000000-0000-0000-0000-000000000000').qmpSocket;
    return Buffer.byteLength(socket) <= MAX_SOCKET_PATH_BYTES;
  }
}

/** Returns the arguments that all machines share. */
export function hardwareArgs(settings: QemuSettings, accel: Accel): string[] {
  const { binary, cpus, memoryMb, cpu = accel === 'kvm' ? 'host' : 'max', args } = settings;
  return [
    '-nodefaults',
    '-no-user-config',
    ...['-machine', binary.includes('aarch64') ? 'virt' : 'q35'],
    ...['-accel', accel],
    ...['-cpu', cpu],
    ...['-smp', String(cpus)],
    ...['-m', String(memoryMb)],
    ...['-display', 'none'],
    ...args,
  ];
}

/**
 * Returns the arguments of one machine. With `-daemonize`, QEMU outlives this process, and the command returns once the
 * machine exists. QEMU locks its `-pidfile`, so that a second command for the same machine fails.
 */
export function machineArgs(machine: Machine, settings: QemuSettings, accel: Accel): string[] {
  const { image, imageFormat, dir } = settings;
  const files = new MachineDir(dir, machine.id);
  return [
    ...identityArgs(machine.id),
    ...['-name', machine.name],
    ...hardwareArgs(settings, accel),
    ...['-chardev', `file,id=console,path=${escapeOption(files.console)},append=on`],
    ...['-serial', 'chardev:console'],
    ...['-qmp', `unix:${escapeOption(files.qmpSocket)},server=on,wait=off`],
    ...['-pidfile', files.pid],
    ...(image === undefined
      ? []
      : ['-drive', `file=${escapeOption(image)},format=${imageFormat},snapshot=on,if=virtio`]),
    '-daemonize',
  ];
}

/** Returns the arguments that identify the process of a machine among all processes of the host. */
export function identityArgs(id: string): readonly [string, string] {
  return ['-uuid', id];
}

/** Escapes a value for a QEMU option list, in which a comma is a separator and two commas are a literal comma. */
function escapeOption(value: string): string {
  return value.replaceAll(',', ',,');
}
