import { execFile, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { promisify } from 'node:util';
import { messageOf, systemCode } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { type Accel, hardware } from './command.ts';
import type { QemuSettings } from './settings.ts';

const PACKAGES: Readonly<Record<string, string>> = {
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-system-aarch64': 'qemu-system-arm',
};

const PROBE_MS = 20_000;

/**
 * The version of QEMU that would be run.
 * @throws StartError that says how to get it
 */
export async function versionOf(binary: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(binary, ['--version'], { timeout: PROBE_MS });
    return stdout.split('\n', 1)[0] ?? '';
  } catch (error) {
    const missing = systemCode(error) === 'ENOENT';
    const name = PACKAGES[binary];
    const install = name === undefined ? '' : ` (on Debian: apt-get install ${name})`;
    throw new StartError(
      'DRIVER',
      missing
        ? `the driver qemu needs ${binary}, which is not there; install it${install}, or name another by qemu.binary in the --config file`
        : `${binary} does not run: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * How machines are to run here. KVM is tried and not only looked for: in a machine that is itself virtual, the device may
 * be there and a CPU still not come up.
 * @throws StartError when the one that is demanded does not work
 */
export function accelFor(settings: QemuSettings): Accel {
  if (settings.accel === 'tcg') return 'tcg';
  const why = whyNoKvm(settings);
  if (why === undefined) return 'kvm';
  if (settings.accel === 'kvm')
    throw new StartError('DRIVER', `qemu.accel is kvm, which does not work here: ${why}`);
  return 'tcg';
}

function whyNoKvm(settings: QemuSettings): string | undefined {
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK);
  } catch (error) {
    return messageOf(error);
  }
  const { status, stderr, error } = spawnSync(
    settings.binary,
    [...hardware(settings, 'kvm'), '-S', '-qmp', 'stdio'],
    {
      input: '{"execute":"qmp_capabilities"}\n{"execute":"quit"}\n',
      encoding: 'utf8',
      timeout: PROBE_MS,
    },
  );
  if (status === 0) return undefined;
  return error?.message ?? (stderr.trim().split('\n').at(-1) || `it ended with ${status}`);
}
