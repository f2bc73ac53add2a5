import { type DeclaredKind, type KubeObject, NotFoundError, nodeWorld } from '@vmwright/runtime';
import type { Command } from 'commander';
import { readFamily } from './children.ts';
import { type Cluster, openCluster } from './cluster.ts';
import { parseTarget } from './kinds.ts';
import { clusterOptions, isJson, isSet, textOption } from './options.ts';
import { printResult } from './output.ts';
import { renderDescription } from './render/describe.ts';
import { problemsOf } from './state.ts';
import { shorten, treeOf } from './tree.ts';

/** `vmwright describe`: prints an object, its children and its machines. */
export async function describe(target: string, command: Command): Promise<void> {
  const { kind, name } = parseTarget(target);
  await using cluster = await openCluster(clusterOptions(command));
  const object = await readTarget(cluster, kind, name, textOption(command, 'namespace'));
  const tree = treeOf(await readFamily(cluster.client, kind, object));
  const description = { tree: isSet(command, 'all') ? tree : shorten(tree), problems: problemsOf(object) };
  printResult(isJson(command), description, (paint) =>
    renderDescription(description, nodeWorld.now(), paint),
  );
}

/** Reads an object. @throws Error with the remedy if the object does not exist */
export async function readTarget(
  { client, access }: Cluster,
  kind: DeclaredKind,
  name: string,
  namespace = access.namespace,
): Promise<KubeObject> {
  try {
    return await client.get<KubeObject>(kind, { namespace, name });
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    throw new Error(
      `${kind.kind} ${namespace}/${name} does not exist; \`kubectl get ${kind.plural}.${kind.group} -A\` lists all objects of this kind, -n selects the namespace`,
      { cause: error },
    );
  }
}
