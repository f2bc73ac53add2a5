import { type Client, Event, type KubeObject, nodeWorld } from '@vmwright/runtime';
import type { Command } from 'commander';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { readImages } from './children.ts';
import { listAll, openCluster } from './cluster.ts';
import { readTarget } from './describe.ts';
import { explain } from './explain.ts';
import { parseTarget } from './kinds.ts';
import { readLeader } from './leader.ts';
import { clusterOptions, isJson, textOption } from './options.ts';
import { printResult } from './output.ts';
import { renderExplanation } from './render/why.ts';
import { operatorLocation } from './status.ts';

/** `vmwright why`: explains what blocks an object and when the operator tries again. */
export async function why(target: string, command: Command): Promise<void> {
  const { kind, name } = parseTarget(target);
  await using cluster = await openCluster(clusterOptions(command));
  const { client } = cluster;
  const object = await readTarget(cluster, kind, name, textOption(command, 'namespace'));
  const [leader, events, dependencies] = await Promise.all([
    readLeader(client, operatorLocation(command).namespace, nodeWorld.now()),
    readEvents(client, object),
    kind === VirtualMachine ? readImages(client, object) : [],
  ]);
  const evidence = { kind: kind.kind, object, leader, events, dependencies };
  const explanation = explain(evidence, nodeWorld.now());
  printResult(isJson(command), explanation, (paint) => renderExplanation(explanation, paint));
}

async function readEvents(client: Client, { metadata }: KubeObject): Promise<readonly Event[]> {
  const { items } = await listAll(client, Event, metadata.namespace);
  return items.filter(({ regarding }) => regarding.uid === metadata.uid);
}
