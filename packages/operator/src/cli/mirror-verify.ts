import { messageOf, nodeWorld, stopSignal } from '@vmwright/runtime';
import type { Command } from 'commander';
import { clusterAccess } from '../access.ts';
import { mirrorSettings } from '../mirror/settings.ts';
import { printVerification, verify } from '../mirror/verify.ts';
import { parseTime } from '../settings/values.ts';
import { clusterOptions, textOption } from './options.ts';

/** `vmwright mirror verify`: compares the cluster with the table of the status mirror. Changes nothing. */
export async function mirrorVerify(command: Command): Promise<void> {
  try {
    const settings = mirrorSettings(textOption(command, 'config'), process.env, 'verify');
    const waitMs = parseTime('--wait', textOption(command, 'wait') ?? '0s', 0);
    const access = await clusterAccess(nodeWorld, clusterOptions(command));
    const found = await verify(nodeWorld, access, settings, waitMs, stopSignal());
    process.exit(printVerification('vmwright', found)); // a connection to a server that has vanished would keep the process alive
  } catch (error) {
    console.error(`vmwright: ${messageOf(error)}`);
    process.exit(2);
  }
}
