import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isSeq, parseAllDocuments } from 'yaml';
import { condition } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { Pki } from '../kubernetes/pki.ts';
import { readManifest } from '../manifests/load.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';

/** Serving certificate of the virt components. */
export interface Certificates {
  /** CA certificate in PEM; the other fields are paths of files. */
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

export async function writeCertificates(pki: Pki): Promise<Certificates> {
  const dir = await RunSupervisor.shared.folder('kubevirt-pki');
  const { certificate, key } = pki.server('virt-api.kubevirt.svc', ['virt-api.kubevirt.svc']);
  const files = { certificate: join(dir, 'tls.crt'), key: join(dir, 'tls.key') };
  await writeFile(files.certificate, certificate);
  await writeFile(files.key, key, { mode: 0o600 });
  return { ca: pki.ca.certificate, ...files };
}

export async function startVirtController(
  cluster: Cluster,
  command: string,
  certificates: Certificates,
): Promise<Part> {
  const port = await freePort();
  return Part.start({
    name: 'virt-controller',
    command,
    args: [
      `--kubeconfig=${await cluster.kubeconfigFor({ namespace: 'kubevirt', name: 'kubevirt-controller' })}`,
      '--listen=127.0.0.1',
      `--port=${port}`,
      '--launcher-image=testbed/virt-launcher', // never pulled, because all kubelets are simulated
      '--exporter-image=testbed/virt-exportserver',
      `--prom-cert-file=${certificates.certificate}`,
      `--prom-key-file=${certificates.key}`,
      '--leader-elect-lease-duration=4s',
      '--leader-elect-renew-deadline=3s',
      '--leader-elect-retry-period=500ms',
    ],
    ready: () => healthy(`https://127.0.0.1:${port}/leader`, /"leader": *"true"/),
  });
}

/** Starts virt-api, which serves KubeVirt's admission webhooks and its subresources (start, stop, restart). */
export async function startVirtApi(
  cluster: Cluster,
  command: string,
  certificates: Certificates,
): Promise<Part> {
  const port = await freePort();
  await cluster.apply(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'kubevirt-ca', namespace: 'kubevirt' },
      data: { 'ca-bundle': certificates.ca },
    }),
  );
  const part = await Part.start({
    name: 'virt-api',
    command,
    args: [
      `--kubeconfig=${await cluster.kubeconfigFor({ namespace: 'kubevirt', name: 'kubevirt-apiserver' })}`,
      '--listen=127.0.0.1',
      `--port=${port}`,
      ...['tls', 'handler'].flatMap((use) => [
        `--${use}-cert-file=${certificates.certificate}`,
        `--${use}-key-file=${certificates.key}`,
      ]),
    ],
    ready: () => healthy(`https://127.0.0.1:${port}/apis/subresources.kubevirt.io/v1/healthz`),
  });
  try {
    await cluster.apply(await registration(certificates.ca, port));
    const registered = '/apis/apiregistration.k8s.io/v1/apiservices/v1.subresources.kubevirt.io';
    await cluster.waitFor(registered, (service) => condition(service, 'Available') === 'True');
  } catch (error) {
    await part[Symbol.asyncDispose]();
    throw error;
  }
  return part;
}

/**
 * Returns the manifests of virt-api's webhooks, APIServices and Service. The Service has an ExternalName, so that the
 * API server connects to the local process.
 */
async function registration(ca: string, port: number): Promise<string> {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'virt-api', namespace: 'kubevirt' },
    spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] },
  };
  const caBundle = Buffer.from(ca).toString('base64');
  const documents = parseAllDocuments(await readManifest('virt-api'));
  for (const document of documents) {
    if (document.has('webhooks')) {
      const webhooks = document.get('webhooks');
      for (const [i] of isSeq(webhooks) ? webhooks.items.entries() : []) {
        document.setIn(['webhooks', i, 'clientConfig', 'caBundle'], caBundle);
        document.setIn(['webhooks', i, 'clientConfig', 'service', 'port'], port);
      }
    } else {
      document.setIn(['spec', 'caBundle'], caBundle);
      document.setIn(['spec', 'service', 'port'], port);
    }
  }
  return [JSON.stringify(service), ...documents.map(String)].join('\n---\n');
}
