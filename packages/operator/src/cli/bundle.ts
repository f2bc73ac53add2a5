import { writeFile } from 'node:fs/promises';
import {
  type Client,
  CustomResourceDefinition,
  Event,
  type Kind,
  type KubeObject,
  Lease,
  messageOf,
  nodeWorld,
  resourceOf,
} from '@vmwright/runtime';
import type { Command } from 'commander';
import { DataVolume, KubevirtInstance, KubevirtMachine, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { VARIABLES } from '../settings/table.ts';
import { VERSION } from '../version.ts';
import { type ArchiveFile, tarGz } from './archive.ts';
import { listAll, openCluster } from './cluster.ts';
import { OWN_KINDS } from './kinds.ts';
import { type OperatorLocation, operatorPods, readOperator } from './operator-endpoint.ts';
import { clusterOptions, namespaceOption, textOption } from './options.ts';
import { Redactor } from './redact.ts';
import { operatorLocation } from './status.ts';

/** Kinds of the child objects in the archive, owners before their children. Secrets and ConfigMaps are never read. */
const RELATED: readonly Kind[] = [KubevirtMachine, KubevirtInstance, DataVolume, VolumeSnapshot];

/** Variables of `ssvirt-vm-controller` that contain a password. */
const MIRROR_SECRETS = ['DATABASE_URL', 'SSVIRT_DATABASE_PASSWORD'];

/** Number of log lines per pod, from the end of the log. */
const LOG_LINES = 5_000;

/** `vmwright bundle`: writes a support archive. */
export async function bundle(command: Command): Promise<void> {
  const [location, namespace] = [operatorLocation(command), namespaceOption(command)];
  await using cluster = await openCluster(clusterOptions(command));
  const path = textOption(command, 'file') ?? 'vmwright-bundle.tar.gz';
  const files = await collect(cluster.client, namespace, location, secrets());
  await writeFile(path, await tarGz(files, nodeWorld.now()), { mode: 0o600 });
  console.log(`${path}: ${files.length} files. Passwords are removed; check the file before you share it.`);
}

/** Returns the secrets in the environment. The redactor removes them from all texts, such as logs that quote them. */
function secrets(): readonly (string | undefined)[] {
  const names = VARIABLES.flatMap(({ variable, isSecret }) => (isSecret ? [variable] : []));
  return [...names, ...MIRROR_SECRETS].map((name) => process.env[name]);
}

async function collect(
  client: Client,
  namespace: string | undefined,
  location: OperatorLocation,
  known: readonly (string | undefined)[],
): Promise<readonly ArchiveFile[]> {
  const redactor = new Redactor(known);
  const files: ArchiveFile[] = [];
  const problems: string[] = [];
  const add = async (file: string, read: () => Promise<string>) => {
    try {
      files.push({ path: `vmwright-bundle/${file}`, text: await read() });
    } catch (error) {
      problems.push(`${file}: ${messageOf(error)}`);
    }
  };
  const lists = new Map<Kind, readonly KubeObject[]>();
  const list = async (kind: Kind, where: string | undefined) => {
    const { items, problem } = await listAll<KubeObject>(client, kind, where);
    if (problem !== undefined) problems.push(`${resourceOf(kind)}: ${problem}`);
    lists.set(kind, items);
  };
  for (const kind of [...OWN_KINDS, Event, ...RELATED]) await list(kind, namespace);
  await list(Lease, location.namespace);
  for (const item of [...lists.values()].flat()) redactor.learn(item);
  const related = relatedTo(OWN_KINDS.flatMap((kind) => lists.get(kind) ?? []));
  for (const [kind, items] of lists)
    await add(`objects/${resourceOf(kind)}.json`, async () =>
      json((RELATED.includes(kind) ? items.filter(related) : items).map((item) => redactor.object(item))),
    );
  await add('crds.json', async () => json(await crdVersions(client)));
  await add('version.json', async () =>
    json({ vmwright: VERSION, node: process.version, cluster: JSON.parse(await client.raw('/version')) }),
  );
  for (const endpoint of ['/status', '/metrics'])
    await add(`operator${endpoint}.txt`, async () =>
      redactor.text(await readOperator(client, location, endpoint)),
    );
  for (const pod of await operatorPods(client, location.namespace).catch(() => [])) {
    const { name } = pod.metadata;
    await add(`logs/${name}.json`, async () => json(redactor.object(pod)));
    const log = `/api/v1/namespaces/${location.namespace}/pods/${name}/log?tailLines=${LOG_LINES}`;
    await add(`logs/${name}.log`, async () => redactor.text(await client.raw(log)));
  }
  files.push({ path: 'vmwright-bundle/problems.txt', text: redactor.text(`${problems.join('\n')}\n`) });
  return files;
}

/**
 * Returns a filter that accepts the descendants of these owners. Call it for an object before its children: the filter
 * accepts a child only if it has already accepted an owner of the child.
 */
function relatedTo(owners: readonly KubeObject[]): (object: KubeObject) => boolean {
  const uids = new Set(owners.map(({ metadata }) => metadata.uid));
  return ({ metadata: { uid, ownerReferences = [] } }) => {
    const isRelated = ownerReferences.some((owner) => uids.has(owner.uid));
    if (isRelated) uids.add(uid);
    return isRelated;
  };
}

/** Returns the versions of the installed CRDs of vmwright, without their schemas. */
async function crdVersions(client: Client): Promise<unknown> {
  const found: object[] = [];
  for (const kind of OWN_KINDS) {
    const name = resourceOf(kind);
    try {
      const { metadata, spec, status } = await client.get(CustomResourceDefinition, { name });
      const versions = spec.versions.map(({ name: version, served, storage }) => ({
        version,
        served,
        storage,
      }));
      found.push({ name, generation: metadata.generation, versions, stored: status?.storedVersions });
    } catch (error) {
      found.push({ name, problem: messageOf(error) });
    }
  }
  return found;
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
