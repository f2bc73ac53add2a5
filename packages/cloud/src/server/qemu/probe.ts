import { execFile, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { promisify } from 'node:util';
import { messageOf, systemCode } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { type Accel, hardwareArgs } from './command.ts';
import type { QemuSettings } from './settings.ts';

/** Debian packages of the QEMU programs. */
const PACKAGES: Readonly<Record<string, string>> = {
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-system-aarch64': 'qemu-system-arm',
};

const PROBE_TIMEOUT_MS = 20_000;

/**
 * Returns the version line of the QEMU program.
 * @throws StartError if the program is missing or does not run
 */
export async function versionOf(binary: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(binary, ['--version'], { timeout: PROBE_TIMEOUT_MS });
    return stdout.split('\n', 1)[0] ?? '';
  } catch (error) {
    const isMissing = systemCode(error) === 'ENOENT';
    const name = PACKAGES[binary];
    const install = name === undefined ? '' : ` (on Debian: apt-get install ${name})`;
    throw new StartError(
      'DRIVER',
      isMissing
        ? `the qemu driver needs ${binary}, which is not installed; install it${install}, or set qemu.binary in the --config file`
        : `cannot run ${binary}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * Returns the accelerator to use. Starts a machine to test KVM: on a virtual host, /dev/kvm may exist but not work.
 * @throws StartError if `accel` is `kvm` and KVM does not work
 */
export function accelFor(settings: QemuSettings): Accel {
  if (settings.accel === 'tcg') return 'tcg';
  const kvmError = testKvm(settings);
  if (kvmError === undefined) return 'kvm';
  if (settings.accel === 'kvm')
    throw new StartError('DRIVER', `qemu.accel is kvm, but KVM does not work on this host: ${kvmError}`);
  return 'tcg';
}

/** Returns why KVM does not work; undefined if it works. */
function testKvm(settings: QemuSettings): string | undefined {
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK);
  } catch (error) {
    return messageOf(error);
  }
  const { status, stderr, error } = spawnSync(
    settings.binary,
    [...hardwareArgs(settings, 'kvm'), '-S', '-qmp', 'stdio'],
    {
      input: '{"execute":"qmp_capabilities"}\n{"execute":"quit"}\n',
      encoding: 'utf8',
      timeout: PROBE_TIMEOUT_MS,
    },
  );
  if (status === 0) return undefined;
  return error?.message ?? (stderr.trim().split('\n').at(-1) || `QEMU exited with ${status}`);
}
