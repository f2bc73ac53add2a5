import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as dial } from 'node:tls';
import { freePort } from '@vmwright/testbed';
import { test as base } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { listOf, replica, webhookRoles } from '../../test/webhook-manager.ts';
import type { Client } from '../client/client.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { ValidatingWebhookConfiguration } from '../kind/builtin/webhook-configuration.ts';
import { CertificateAuthority } from '../pki/certificate.ts';
import { certificatesIn } from '../pki/pem.ts';
import { type AdmissionRules, admission } from './admission.ts';
import { webhookManifests } from './manifests.ts';
import { allow } from './verdict.ts';

const validity = { notBefore: new Date('2020-01-01'), notAfter: new Date('2120-01-01') };
const authority = (commonName: string) => CertificateAuthority.create({ commonName }, validity);

/** Program with a certificate from a directory. */
const test = base.extend('program', async ({ cluster, namespace, task }, { onCleanup }) => {
  const name = `folder-${task.id.replaceAll(/[^0-9]/g, '')}`;
  const [port, folder] = [await freePort(), await mkdtemp(join(tmpdir(), 'vmwright-folder-'))];
  const rules: AdmissionRules<ConfigMap> = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    matchConditions: [{ name: 'ours', expression: `object.metadata.name.startsWith('${name}')` }],
    validate: () => allow(),
  };
  onCleanup(async () => {
    await rm(folder, { recursive: true });
    await cluster.kubectl(['delete', 'validatingwebhookconfiguration', name, '--ignore-not-found']);
    for (const kind of ['clusterrole', 'clusterrolebinding'])
      await cluster.kubectl(['delete', kind, name, '--ignore-not-found']);
  });
  await cluster.apply(listOf(webhookRoles(name, namespace, ['none'])));
  const put = async (file: string, text: string) => {
    await writeFile(join(folder, `.${file}`), text);
    await rename(join(folder, `.${file}`), join(folder, file));
  };
  return {
    name,
    port,
    path: `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${name}`,
    put,
    /** Writes a new certificate of this CA. */
    issue: async (ca: CertificateAuthority) => {
      const names = ['127.0.0.1'];
      const issued = ca.issue({ ...validity, subject: { commonName: 'x' }, usage: ['server'], names });
      await put('tls.key', issued.key);
      await put('tls.crt', issued.certificate);
      return issued;
    },
    apply: (injectCaFrom?: string) => {
      const address = { url: `https://127.0.0.1:${port}` };
      const webhooks = [admission(ConfigMap, rules)];
      return cluster.apply(listOf(webhookManifests({ name, webhooks, address, injectCaFrom })));
    },
    start: async () =>
      replica(
        await cluster.kubeconfigFor({ namespace, name: 'default' }),
        { name, namespace, port, certificates: { pollMs: 200 }, webhooks: { certificateFolder: folder } },
        (manager) => manager.admit(ConfigMap, rules),
      ),
  };
});

function authoritiesIn(object: unknown): string[] {
  const [, bundle = ''] = /"caBundle":"([^"]+)"/.exec(JSON.stringify(object)) ?? [];
  return certificatesIn(Buffer.from(bundle, 'base64').toString()).map(({ subject }) => subject);
}

/** Waits until the API server, which observes a changed caBundle through a watch, accepts the webhook's certificate. */
async function admitted(client: Client, namespace: string, name: string): Promise<void> {
  const create = client.create.bind(client, ConfigMap, { metadata: { namespace, name } }, { dryRun: true });
  await expect.poll(() => create().then(() => 'admitted', String), { timeout: 30_000 }).toBe('admitted');
}

/** Returns the issuer of the certificate that a server presents. */
async function issuerOf(port: number): Promise<string> {
  const socket = dial({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { issuer } = socket.getPeerCertificate();
  socket.destroy();
  return String(issuer.CN);
}

test('if the certificate comes from files, the API server trusts the CAs in ca.crt, even when the CA is replaced', async ({
  program,
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const create = (suffix: string) => admitted(client, namespace, `${program.name}-${suffix}`);
  const [one, two] = [authority('one'), authority('two')];
  await program.issue(one);
  await program.put('ca.crt', one.certificate);
  await program.apply();
  await using _ = await program.start();
  await cluster.waitFor(program.path, (object) => authoritiesIn(object).includes('CN=one'));
  await create('a');

  // The new CA is trusted beside the old one before it issues certificates, as recommended for cert-manager.
  await program.put('ca.crt', `${two.certificate}${one.certificate}`);
  await cluster.waitFor(program.path, (object) => authoritiesIn(object).length === 2);
  await create('b');
  await program.issue(two);
  await expect.poll(() => issuerOf(program.port)).toBe('two');
  await create('c');
  const secret = { namespace, name: `${program.name}-webhook-certificate` };
  await expect(client.get(Secret, secret)).rejects.toThrow('not found');
});

test('a caBundle that cert-manager injects is not overwritten', async ({ program, cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  const [ours, injected] = [authority('ours'), authority('injected')];
  await program.issue(ours);
  await program.put('ca.crt', ours.certificate);
  await program.apply('vmwright-system/webhook');
  const { name } = program;
  const found = await client.get(ValidatingWebhookConfiguration, { name });
  expect(found.metadata.annotations?.['cert-manager.io/inject-ca-from']).toBe('vmwright-system/webhook');
  const path = '/webhooks/0/clientConfig/caBundle';
  const inject = ({ certificate }: CertificateAuthority) => {
    const value = Buffer.from(certificate).toString('base64');
    return client.jsonPatch(ValidatingWebhookConfiguration, { name }, [{ op: 'add', path, value }]);
  };
  await inject(injected);
  await using running = await program.start();
  // The injected CA does not match the certificate yet. The program logs the mismatch and does not repair it.
  const { promise: warned, resolve } = Promise.withResolvers<unknown>();
  running.onLine(({ msg, error }) => {
    // Before the API server has loaded the roles, it responds with 403.
    if (msg === 'Updating the caBundle failed, retrying' && !/forbidden/.test(String(error))) resolve(error);
  });
  expect(await warned).toContain('annotation cert-manager.io/inject-ca-from');
  const before = await client.get(ValidatingWebhookConfiguration, { name });
  expect(authoritiesIn(before)).toEqual(['CN=injected']);
  await inject(ours);
  await admitted(client, namespace, `${name}-a`);
  const after = await client.get(ValidatingWebhookConfiguration, { name });
  expect(authoritiesIn(after)).toEqual(['CN=ours']);
});
