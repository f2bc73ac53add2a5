import { messageOf } from '@vmwright/runtime';
import type { Command } from 'commander';
import { VERSION } from '../version.ts';
import { openCluster } from './cluster.ts';
import { textAt } from './fields.ts';
import { clusterOptions, isJson, isSet } from './options.ts';
import { printResult } from './output.ts';

/** `vmwright version`: prints the version of this program. Without --client, also prints the version of the cluster. */
export async function version(command: Command): Promise<void> {
  const client = {
    version: VERSION,
    revision: process.env.VMWRIGHT_REVISION || 'unknown',
    node: process.version,
  };
  const cluster = isSet(command, 'client') ? undefined : await clusterVersion(command);
  printResult(isJson(command), { ...client, ...(cluster !== undefined && { cluster }) }, () =>
    [
      `vmwright ${client.version} (${client.revision}), Node ${client.node}`,
      ...(cluster === undefined ? [] : [`Kubernetes ${cluster}`]),
    ].join('\n'),
  );
}

/**
 * Returns the version of the API server, or why it is unknown. Does not throw, so that the program's version is printed
 * even if the API server does not respond.
 */
async function clusterVersion(command: Command): Promise<string> {
  try {
    await using cluster = await openCluster(clusterOptions(command));
    return textAt(JSON.parse(await cluster.client.raw('/version')), 'gitVersion');
  } catch (error) {
    return `unknown: ${messageOf(error)}`;
  }
}
