/** Settings of the QEMU driver. */
export interface QemuSettings {
  /** QEMU program: a name on the PATH, or a path. */
  readonly binary: string;
  /** Directory with one subdirectory per machine for its console log, pid file and QMP socket. */
  readonly dir: string;
  readonly memoryMb: number;
  readonly cpus: number;
  /** Accelerator. `auto` uses KVM if it works on this host, otherwise emulation (TCG). */
  readonly accel: 'auto' | 'kvm' | 'tcg';
  /** CPU model. @default `host` with KVM, `max` without */
  readonly cpu: string | undefined;
  /** Disk image, which machines never write to. Without an image, machines stop in their firmware. */
  readonly image: string | undefined;
  /** @default 'raw' */
  readonly imageFormat: 'raw' | 'qcow2';
  /** Additional QEMU arguments. */
  readonly args: readonly string[];
}

/** Returns the QEMU program for the architecture of this host. */
export function defaultBinary(arch = process.arch): string {
  return arch === 'arm64' ? 'qemu-system-aarch64' : 'qemu-system-x86_64';
}
