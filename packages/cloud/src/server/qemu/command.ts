import { join } from 'node:path';
import type { Machine } from '../machines/driver.ts';
import type { QemuSettings } from './settings.ts';

export type Accel = 'kvm' | 'tcg';

/** A Unix socket's address has room for so many bytes, and a longer one fails where nobody looks for it. */
const LONGEST_SOCKET = 107;

/** Where a machine has its files. */
export class MachineFolder {
  readonly path: string;

  constructor(dir: string, id: string) {
    this.path = join(dir, id);
  }

  get pid(): string {
    return join(this.path, 'pid');
  }

  get monitor(): string {
    return join(this.path, 'qmp.sock');
  }

  get console(): string {
    return join(this.path, 'console.log');
  }

  static fits(dir: string): boolean {
    const longest = new MachineFolder(dir, '00000000-0000-0000-0000-000000000000').monitor;
    return Buffer.byteLength(longest) <= LONGEST_SOCKET;
  }
}

/** What a machine is made of, whoever it is. */
export function hardware(settings: QemuSettings, accel: Accel): string[] {
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
 * The arguments for one machine. `-daemonize`: it outlives us, and the command returns once the machine is there.
 * `-pidfile` is QEMU's own lock: of two commands for the same machine the second fails.
 */
export function commandFor(machine: Machine, settings: QemuSettings, accel: Accel): string[] {
  const { image, imageFormat, dir } = settings;
  const folder = new MachineFolder(dir, machine.id);
  return [
    ...markOf(machine.id),
    ...['-name', machine.name],
    ...hardware(settings, accel),
    ...['-chardev', `file,id=console,path=${option(folder.console)},append=on`],
    ...['-serial', 'chardev:console'],
    ...['-qmp', `unix:${option(folder.monitor)},server=on,wait=off`],
    ...['-pidfile', folder.pid],
    ...(image === undefined
      ? []
      : ['-drive', `file=${option(image)},format=${imageFormat},snapshot=on,if=virtio`]),
    '-daemonize',
  ];
}

/** By which a process is known to be that machine's, among all that run here. */
export function markOf(id: string): readonly [string, string] {
  return ['-uuid', id];
}

/** In QEMU's options a comma begins the next one, and two are a comma. */
function option(value: string): string {
  return value.replaceAll(',', ',,');
}
