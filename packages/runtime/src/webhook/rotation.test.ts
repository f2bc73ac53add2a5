import { once } from 'node:events';
import { connect as dial } from 'node:tls';
import { nodeWorld } from '@vmwright/core';
import { freePort } from '@vmwright/testbed';
import { test as base } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { waitForPermissions } from '../../test/permissions.ts';
import { listOf, manifestsFor, replica, waitForTrust, webhookRoles } from '../../test/webhook-manager.ts';
import type { Client } from '../client/client.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { ValidatingWebhookConfiguration } from '../kind/builtin/webhook-configuration.ts';
import { CertificateAuthority } from '../pki/certificate.ts';
import { certificatesIn } from '../pki/pem.ts';
import { type AdmissionRules, admission } from './admission.ts';
import { planCertificates } from './certificates/plan.ts';
import { dataOf, EMPTY_STATE } from './certificates/state.ts';
import { allow } from './verdict.ts';

/**
 * `settleMs` covers the time until an API server observes a changed caBundle. On a busy machine, this takes seconds.
 */
const TIMES = { authorityMs: 600_000, servingMs: 60_000, settleMs: 5_000, pollMs: 200 };

/** Each test has its own program, with webhook configuration, Secret and replicas. */
const test = base
  .extend('client', { scope: 'file' }, async ({ cluster }, { onCleanup }) => {
    const client = await connect(cluster.kubeconfig);
    onCleanup(() => client[Symbol.asyncDispose]());
    return client;
  })
  .extend('program', async ({ client, cluster, namespace, task }, { onCleanup }) => {
    const name = `rotation-${task.id.replaceAll(/[^0-9]/g, '')}`;
    const port = await freePort();
    // The API server is shared with other tests: their objects must not be reviewed.
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
    let reviews = 0;
    const rules: AdmissionRules<ConfigMap> = {
      namespaceSelector,
      matchConditions: [{ name: 'ours', expression: `object.metadata.name.startsWith('${name}')` }],
      validate: () => {
        reviews += 1;
        return allow(`admitted by ${name}`);
      },
    };
    const manifests = manifestsFor(name, port, [admission(ConfigMap, rules)]);
    const roles = webhookRoles(name, namespace, ['none']);
    onCleanup(async () => {
      await cluster.kubectl(['delete', 'validatingwebhookconfiguration', name, '--ignore-not-found']);
      for (const kind of ['clusterrole', 'clusterrolebinding'])
        await cluster.kubectl(['delete', kind, name, '--ignore-not-found']);
    });
    await cluster.apply(listOf(roles));
    const kubeconfig = await cluster.kubeconfigFor({ namespace, name: 'default' });
    let aheadMs = 0;
    const world = { ...nodeWorld, now: () => nodeWorld.now() + aheadMs };
    const start = (at = port) =>
      replica(kubeconfig, { name, namespace, port: at, certificates: TIMES, world }, (manager) =>
        manager.admit(ConfigMap, rules),
      );
    return {
      name,
      port,
      start,
      /** Sets the wall clocks of the replicas forward. */
      setForward: (ms: number) => {
        aheadMs += ms;
      },
      /** Waits until the API server, which observes the configuration through a watch, calls the webhook. */
      called: async () => {
        const metadata = { namespace, name: `${name}-called` };
        const review = () => client.create(ConfigMap, { metadata }, { dryRun: true }).then(() => reviews > 0);
        await expect.poll(() => review().catch(() => false)).toBe(true);
      },
      apply: () => cluster.apply(listOf(manifests)),
      manifest: { ...manifests[0] },
      secret: { namespace, name: `${name}-webhook-certificate` },
      configuration: `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${name}`,
      secretPath: `/api/v1/namespaces/${namespace}/secrets/${name}-webhook-certificate`,
    };
  });

/** Returns the fingerprint of the certificate that a server presents. */
async function fingerprintOf(port: number): Promise<string> {
  const socket = dial({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** Calls the function with each version of a Secret until the returned watch is disposed of. */
function watchSecret(
  client: Client,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  onVersion: (secret: Secret) => void,
): AsyncDisposable {
  const stop = new AbortController();
  const selection = { namespace, fieldSelector: `metadata.name=${name}`, signal: stop.signal };
  const watch = async () => {
    for await (const event of client.watch(Secret, { ...selection, sendInitialEvents: true }))
      if (event.type !== 'BOOKMARK') onVersion(event.object);
  };
  const watching = watch().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await watching;
    },
  };
}

function bundle(object: unknown): string {
  const [, found = ''] = /"caBundle":"([^"]+)"/.exec(JSON.stringify(object)) ?? [];
  return Buffer.from(found, 'base64').toString();
}

function trustedCount(object: unknown): number {
  return certificatesIn(bundle(object)).length;
}

function fingerprintIn({ data = {} }: Secret): string {
  const [leaf] = certificatesIn(Buffer.from(data['tls.crt'] ?? '', 'base64').toString());
  return leaf?.fingerprint256 ?? '';
}

/** Returns the data of a Secret that was created `ageMs` ago. */
function agedSecret(name: string, ageMs: number) {
  const plan = planCertificates(EMPTY_STATE, {
    now: Date.now() - ageMs,
    lifetimes: TIMES,
    commonName: `${name} webhooks`,
    names: ['127.0.0.1'],
    isSettled: () => false,
  });
  return dataOf(plan?.next ?? EMPTY_STATE);
}

test('no request fails while the certificate and the CA are rotated', async ({
  client,
  program,
  namespace,
  cluster,
}) => {
  const { name, port, secret, configuration } = program;
  // The CA is due for rotation in five minutes, and the certificate has expired.
  const data = agedSecret(name, 0.8 * TIMES.authorityMs - 300_000);
  await client.create(Secret, { metadata: secret, type: 'kubernetes.io/tls', data });
  const issued = new Set<string>();
  await using _watch = watchSecret(client, secret, (each) => void issued.add(fingerprintIn(each)));
  await program.apply();
  await using _first = await program.start();
  await using _second = await program.start(await freePort());
  await waitForTrust(cluster, [configuration]);
  await program.called();
  program.setForward(300_000);

  const failures: string[] = [];
  const leaves = new Set<string>();
  let [requests, remaining] = [0, 10];
  while (remaining > 0) {
    // Many concurrent requests, so that the API server opens new connections, which use the newest certificate.
    const burst = Array.from({ length: 40 }, (_, index) =>
      client
        .create(ConfigMap, { metadata: { namespace, name: `${name}-${index}` } }, { dryRun: true })
        .catch((error: unknown) => void failures.push(String(error))),
    );
    await Promise.all(burst);
    requests += burst.length;
    leaves.add(await fingerprintOf(port));
    const held = await client.get(Secret, secret);
    const [newest] = certificatesIn(Buffer.from(held.data?.['ca.crt'] ?? '', 'base64').toString());
    const [serving] = certificatesIn(Buffer.from(held.data?.['tls.crt'] ?? '', 'base64').toString());
    const rotated = trustedCount(await cluster.api.get(configuration)) === 2;
    if (rotated && newest && serving?.verify(newest.publicKey) && leaves.has(serving.fingerprint256))
      remaining -= 1;
  }
  expect(failures).toEqual([]);
  expect(requests).toBeGreaterThan(400);
  // The Secret contained these certificates in turn: the expired one, its successor, the last one of the old CA, and
  // the first one of the new CA.
  await expect.poll(() => issued.size).toBeGreaterThanOrEqual(4);
  expect(leaves.size).toBeGreaterThanOrEqual(2);
});

test('while a new CA cannot be written to the caBundle, the certificate of the old CA stays in use', async ({
  client,
  program,
  namespace,
  cluster,
}) => {
  const { name, secret } = program;
  const data = agedSecret(name, 0.8 * TIMES.authorityMs);
  const caBundle = data['ca.crt'] ?? '';
  await client.create(Secret, { metadata: secret, type: 'kubernetes.io/tls', data });
  await program.apply();
  const path = '/webhooks/0/clientConfig/caBundle';
  await client.jsonPatch(ValidatingWebhookConfiguration, { name }, [{ op: 'add', path, value: caBundle }]);
  await cluster.kubectl(['delete', 'clusterrolebinding', name]); // removes the permission to write the caBundle
  const resource = 'validatingwebhookconfigurations';
  const permission = { verb: 'patch', group: 'admissionregistration.k8s.io', resource, name };
  await waitForPermissions(cluster, { namespace, name: 'default' }, [permission], false);
  await using replica = await program.start();
  await replica.serving;
  await program.called();

  const failedWrites = () =>
    replica.lines.filter(({ msg }) => msg === 'Updating the caBundle failed, retrying').length;
  const failures: string[] = [];
  // Wait for longer than the rotation would take with the permission.
  while (failedWrites() < (2 * TIMES.settleMs) / TIMES.pollMs)
    await client
      .create(ConfigMap, { metadata: { namespace, name: `${name}-x` } }, { dryRun: true })
      .catch((error: unknown) => void failures.push(String(error)));
  expect(failures).toEqual([]);
  const held = await client.get(Secret, secret);
  const [newest, old] = certificatesIn(Buffer.from(held.data?.['ca.crt'] ?? '', 'base64').toString());
  const [leaf] = certificatesIn(Buffer.from(held.data?.['tls.crt'] ?? '', 'base64').toString());
  expect(newest && leaf?.verify(newest.publicKey)).toBe(false);
  expect(old && leaf?.verify(old.publicKey)).toBe(true);
  expect(await fingerprintOf(program.port)).toBe(leaf?.fingerprint256);
});

test('two replicas that start together serve the same certificate', async ({ client, program, cluster }) => {
  await program.apply();
  const other = await freePort();
  await using first = await program.start();
  await using second = await program.start(other);
  await Promise.all([first.serving, second.serving]);
  await waitForTrust(cluster, [program.configuration]);
  const secret = await client.get(Secret, program.secret);
  expect(await Promise.all([program.port, other].map(fingerprintOf))).toEqual([
    fingerprintIn(secret),
    fingerprintIn(secret),
  ]);
  expect(secret.type).toBe('kubernetes.io/tls');
});

test('if a replica was killed right after it wrote the Secret, the next replica serves the certificate of the Secret and writes its CA to the caBundle', async ({
  client,
  program,
  cluster,
}) => {
  const data = agedSecret(program.name, 0);
  await client.create(Secret, { metadata: program.secret, type: 'kubernetes.io/tls', data });
  await program.apply();
  await using _ = await program.start();
  const trusted = await cluster.waitFor(program.configuration, (object) => bundle(object) !== '');
  expect(bundle(trusted)).toBe(Buffer.from(data['ca.crt'] ?? '', 'base64').toString());
  expect(await fingerprintOf(program.port)).toBe(fingerprintIn(await client.get(Secret, program.secret)));
});

test('a deleted or damaged certificate Secret is restored', async ({ client, program, cluster }) => {
  await program.apply();
  await using _ = await program.start();
  await waitForTrust(cluster, [program.configuration]);
  const before = await client.get(Secret, program.secret);
  await client.delete(Secret, program.secret);
  const restored = await cluster.waitFor(
    program.secretPath,
    ({ metadata }) => metadata.uid !== before.metadata.uid,
  );
  expect(restored).toMatchObject({ data: before.data });
  for (const key of ['tls.crt', 'tls.key', 'ca.crt', 'ca.key']) {
    await client.mergePatch(Secret, program.secret, { data: { [key]: 'c3BvaWx0' } });
    await cluster.waitFor(program.secretPath, (object) =>
      JSON.stringify(object).includes(before.data?.[key] ?? ''),
    );
  }
  expect((await client.get(Secret, program.secret)).data).toEqual(before.data);
  expect(await fingerprintOf(program.port)).toBe(fingerprintIn(before));
});

test('a removed or changed caBundle is repaired, and the caBundle of foreign webhooks is not touched', async ({
  client,
  program,
  cluster,
}) => {
  await program.apply();
  await using _ = await program.start();
  await waitForTrust(cluster, [program.configuration]);
  const { name, configuration } = program;
  const before = bundle(await cluster.api.get(configuration));
  const validity = { notBefore: new Date(0), notAfter: new Date('2100-01-01') };
  const foreignCa = CertificateAuthority.create({ commonName: 'foreign' }, validity).certificate;
  const value = Buffer.from(foreignCa).toString('base64');
  const path = '/webhooks/0/clientConfig/caBundle';
  for (const change of [
    { op: 'remove', path },
    { op: 'replace', path, value },
  ] as const) {
    await client.jsonPatch(ValidatingWebhookConfiguration, { name }, [change]);
    expect(bundle(await cluster.waitFor(configuration, (object) => bundle(object) === before))).toBe(before);
  }

  // The configuration is deleted, and created again with an additional foreign webhook.
  const { webhooks: ours = [] } = await client.get(ValidatingWebhookConfiguration, { name });
  const withoutBundle = ours.map((each) => ({ ...each, clientConfig: { url: each.clientConfig.url } }));
  await cluster.kubectl(['delete', 'validatingwebhookconfiguration', name]);
  const foreign = {
    name: 'foreign.rotation-test.vmwright.dev',
    clientConfig: { url: 'https://127.0.0.1:1', caBundle: value },
    failurePolicy: 'Ignore',
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    rules: [],
  };
  await cluster.apply(listOf([{ ...program.manifest, webhooks: [foreign, ...withoutBundle] }]));
  await waitForTrust(cluster, [configuration]);
  const { webhooks = [] } = await client.get(ValidatingWebhookConfiguration, { name });
  expect(webhooks.map(({ clientConfig }) => clientConfig.caBundle)).toEqual([
    value,
    Buffer.from(before).toString('base64'),
  ]);
});
