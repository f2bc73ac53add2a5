import { type KubeObject, messageOf, nodeWorld } from '@vmwright/runtime';
import type { Command } from 'commander';
import type { OperatorStatus } from '../enabled-controllers.ts';
import { type Cluster, listAll, openCluster } from './cluster.ts';
import { OWN_KINDS } from './kinds.ts';
import { readLeader } from './leader.ts';
import { type OperatorLocation, readStatus } from './operator-endpoint.ts';
import { clusterOptions, isJson, namespaceOption, textOption } from './options.ts';
import { printResult } from './output.ts';
import { renderStatus } from './render/status.ts';
import { type KindObjects, summarize } from './summary.ts';

/** `vmwright status`: prints what runs and what needs attention. */
export async function status(command: Command): Promise<void> {
  const [location, namespace] = [operatorLocation(command), namespaceOption(command)];
  await using cluster = await openCluster(clusterOptions(command));
  const [operator, leader, kinds] = await Promise.all([
    readOperatorStatus(cluster, location),
    readLeader(cluster.client, location.namespace, nodeWorld.now()),
    readKinds(cluster, namespace),
  ]);
  const summary = { operator, leader, ...summarize(kinds, nodeWorld.now()) };
  printResult(isJson(command), summary, (paint) => renderStatus(summary, nodeWorld.now(), paint));
}

export function operatorLocation(command: Command): OperatorLocation {
  const namespace = textOption(command, 'operatorNamespace') ?? 'vmwright-system';
  return { namespace, url: textOption(command, 'operatorUrl') };
}

async function readOperatorStatus(
  { client }: Cluster,
  location: OperatorLocation,
): Promise<OperatorStatus | { readonly problem: string }> {
  try {
    return await readStatus(client, location);
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

async function readKinds(
  { client }: Cluster,
  namespace: string | undefined,
): Promise<readonly KindObjects[]> {
  return Promise.all(
    OWN_KINDS.map(async (kind) => ({
      kind: kind.kind,
      ...(await listAll<KubeObject>(client, kind, namespace)),
    })),
  );
}
