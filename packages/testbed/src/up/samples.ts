import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Cluster } from '../kubernetes/cluster.ts';

/** Applies `config/samples`, and the objects that the samples refer to. */
export async function applySamples(cluster: Cluster): Promise<void> {
  await cluster.apply(
    prerequisites()
      .map((each) => JSON.stringify(each))
      .join('\n---\n'),
  );
  const folder = fileURLToPath(new URL('../../../../config/samples/', import.meta.url));
  const files = (await readdir(folder)).filter((file) => file !== 'kustomization.yaml');
  await cluster.apply(files.map((file) => join(folder, file)));
}

const IMAGE_NAMESPACE = 'vmdi-farm';

/** Returns the namespace of the images, the credentials of their source, and the networks of the VirtualMachines. */
function prerequisites(): object[] {
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: IMAGE_NAMESPACE } },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'foo-bar', namespace: IMAGE_NAMESPACE },
      stringData: { accessKeyId: 'testbed', secretKey: 'testbed' },
    },
    ...['control-net', 'bridge-inet', 'bridge-edge'].map((name) => ({
      apiVersion: 'k8s.cni.cncf.io/v1',
      kind: 'NetworkAttachmentDefinition',
      metadata: { name, namespace: 'default' },
      spec: { config: JSON.stringify({ cniVersion: '0.3.1', type: 'bridge', bridge: name }) },
    })),
  ];
}
