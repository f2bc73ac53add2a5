/** How QEMU is run. */
export interface QemuSettings {
  /** Its name on the PATH, or its path. */
  readonly binary: string;
  /** Where each machine has a folder: its console log, its process id, its monitor. */
  readonly dir: string;
  readonly memoryMb: number;
  readonly cpus: number;
  /** `auto`: KVM if it works here, else emulation. */
  readonly accel: 'auto' | 'kvm' | 'tcg';
  /** `host`, `max`, … @default `host` with KVM, `max` without */
  readonly cpu: string | undefined;
  /** A disk image; machines read it and never write to it. Without, machines stop in their firmware. */
  readonly image: string | undefined;
  /** @default 'raw' */
  readonly imageFormat: 'raw' | 'qcow2';
  /** More arguments, as they are. */
  readonly args: readonly string[];
}

/** The emulator for machines of this computer's own kind. */
export function defaultBinary(arch = process.arch): string {
  return arch === 'arm64' ? 'qemu-system-aarch64' : 'qemu-system-x86_64';
}
