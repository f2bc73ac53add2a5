import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Cluster, condition, field, type KubeObject } from '@vmwright/testbed';
import { expect } from 'vitest';
import { createNetwork, FARM, noteOf, PATHS, reasonOf, WORK } from './with-kubevirt.ts';

/* The example of the design proposal that VirtualMachine is based on. */

/** The manifest of the design proposal, unchanged. */
const SEED = fileURLToPath(new URL('../../../config/samples/virtualmachine.yaml', import.meta.url));
/** Name of the VirtualMachine. */
export const PROPOSED = 'demo-workspace-1';

const status = (vm: KubeObject, name: string) => field(vm, 'status', name);

/** Creates the Secret that the proposal's image names. */
export async function createImageSecret({ api }: Cluster): Promise<void> {
  await api.create(`/api/v1/namespaces/${FARM}/secrets`, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'foo-bar' },
    stringData: { accessKeyId: 'id', secretKey: 'key' },
  });
}

/**
 * Creates the proposal's VirtualMachine, and then its networks. Checks that the VirtualMachine waits for the networks,
 * gets an image, and becomes Ready.
 */
export async function createProposed(cluster: Cluster): Promise<KubeObject> {
  const path = `${PATHS.machines}/${PROPOSED}`;
  const get = (child: string) => cluster.api.get(child);
  const manifest = await readFile(SEED, 'utf8');
  const { stderr } = await cluster.kubectl(['apply', '-n', WORK, '-f', '-'], { input: manifest });
  expect(stderr).toContain('"demo user" to "demo-user"');
  expect(stderr).toContain('plain_text_passwd is readable by everyone');
  const waiting = await cluster.waitFor(path, (vm) => reasonOf(vm) === 'NetworkNotFound');
  expect(status(waiting, 'message')).toContain(
    'The NetworkAttachmentDefinition work/control-net (and 2 more)',
  );
  for (const name of ['control-net', 'bridge-inet', 'bridge-edge']) await createNetwork(cluster, name);
  const ready = await cluster.waitFor(
    path,
    (vm) =>
      status(vm, 'phase') === 'Ready' &&
      status(vm, 'observedGeneration') === field(vm, 'metadata', 'generation'),
  );
  expect(reasonOf(ready)).toBe('IgnoredOnDeploy');
  expect(condition(ready, 'DiskImageReady')).toBe('True');
  expect(condition(ready, 'VolumeReady')).toBe('True');
  expect(status(ready, 'printableStatus')).toBe('Stopped');

  const image = await get(`${PATHS.images}/demo-vmdi`);
  expect(field(image, 'metadata', 'annotations', 'vmwright.dev/created-for')).toBe(`${WORK}/${PROPOSED}`);
  expect(field(image, 'metadata', 'ownerReferences')).toBeUndefined();
  const volume = await get(`${PATHS.volumes}/${status(ready, 'dataVolume')}`);
  expect(field(volume, 'spec')).toMatchObject({
    source: { snapshot: { namespace: FARM, name: status(ready, 'snapshot') } },
    storage: { storageClassName: 'gp3', resources: { requests: { storage: '24Gi' } } },
  });
  const machine = await get(`${PATHS.kubevirt}/${PROPOSED}`);
  expect(field(machine, 'spec', 'runStrategy')).toBe('Halted');
  const labels = { 'vmwright.dev/base-vm': 'ubuntu_2004_lts_en-us_x64', 'vmwright.dev/version': '2.1.0' };
  expect(machine.metadata).toMatchObject({ labels, annotations: labels });
  expect(await noteOf(cluster, PROPOSED, 'UserNamesChanged')).toContain('"demo user" to "demo-user"');
  expect(await noteOf(cluster, PROPOSED, 'ImageCreated')).toContain('vmdi-farm/demo-vmdi');
  const table = (await cluster.kubectl(['get', '-n', WORK, 'otvm'])).stdout;
  expect(table).toMatch(/^NAME +PHASE +IMAGE +STATUS +IP +AGE\ndemo-workspace-1 +Ready +demo-vmdi +Stopped/);
  return ready;
}
