import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Assets } from '../assets/assets.ts';
import { healthy } from '../process/healthy.ts';
import { Keeper } from '../process/keeper.ts';
import { Part } from '../process/part.ts';
import { freePort, portFor } from '../process/ports.ts';
import { Cluster } from './cluster.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { Pki } from './pki.ts';

export interface ControlPlaneOptions {
  /** Start kube-scheduler too. @default false */
  readonly scheduler?: boolean;
  /** The API server's port. @default a free one */
  readonly port?: number;
  /** Common name of the client certificate, by `pki.ca`, that the API server shows to webhooks. @default it shows none */
  readonly webhookClientName?: string;
}

/**
 * A Kubernetes control plane of one's own: etcd, kube-apiserver with RBAC, aggregation and webhooks, and
 * kube-controller-manager, so that garbage collection, namespace deletion and service accounts are real.
 */
export interface ControlPlane extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly pki: Pki;
  readonly etcd: Part;
  readonly apiserver: Part;
  readonly controllerManager: Part;
  readonly scheduler: Part | undefined;
  /** Has etcd forget all history, as it does by itself every five minutes: older versions cannot be asked for any more. */
  compact(): Promise<void>;
  /** Copies etcd's data. etcd is stopped while it is copied. @returns restores that copy, with etcd and the API server stopped */
  backup(): Promise<() => Promise<void>>;
}

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  await using stack = new AsyncDisposableStack();
  const assets = new Assets();
  const dir = await Keeper.shared.folder('kubernetes');
  stack.defer(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }));
  const pki = new Pki(dir);
  const files = await pki.writeFiles();
  const port = await portFor('kube-apiserver', options.port);
  const server = `https://127.0.0.1:${port}`;
  const kubeconfig = (name: string, ...groups: readonly string[]) =>
    writeKubeconfig(join(dir, `${name.replaceAll(':', '-')}.kubeconfig`), {
      server,
      ca: pki.ca.certificate,
      as: pki.client(name, ...groups),
    });
  const cluster = stack.use(await Cluster.connect(await kubeconfig('vmwright-admin', 'system:masters')));

  const etcd = await startEtcd(assets, dir);
  stack.use(etcd.part);

  const apiserver = stack.use(
    await Part.start({
      name: 'kube-apiserver',
      command: await assets.path('kube-apiserver'),
      args: [
        `--etcd-servers=${etcd.url}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${port}`,
        `--tls-cert-file=${files.server}`,
        `--tls-private-key-file=${files.serverKey}`,
        `--client-ca-file=${files.ca}`,
        '--authorization-mode=Node,RBAC',
        `--service-account-key-file=${files.serviceAccountPublicKey}`,
        `--service-account-signing-key-file=${files.serviceAccountKey}`,
        '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
        '--service-cluster-ip-range=10.96.0.0/16',
        // Aggregated APIs know who asks by these; without them the extension API servers refuse everyone.
        `--requestheader-client-ca-file=${files.frontProxyCa}`,
        '--requestheader-allowed-names=front-proxy',
        '--requestheader-username-headers=X-Remote-User',
        '--requestheader-group-headers=X-Remote-Group',
        '--requestheader-extra-headers-prefix=X-Remote-Extra-',
        `--proxy-client-cert-file=${files.frontProxy}`,
        `--proxy-client-key-file=${files.frontProxyKey}`,
        '--allow-privileged=true',
        '--endpoint-reconciler-type=none', // it would publish 127.0.0.1 as the kubernetes service, which is refused
        '--profiling=false',
        ...(options.webhookClientName === undefined
          ? []
          : [
              `--admission-control-config-file=${await writeAdmission(dir, pki.client(options.webhookClientName))}`,
            ]),
      ],
      ready: async () => (await cluster.api.text('/readyz')) === 'ok',
    }),
  );

  const controllerManager = stack.use(
    await startComponent(
      assets,
      'kube-controller-manager',
      await kubeconfig('system:kube-controller-manager'),
      [
        '--use-service-account-credentials=true', // one identity for all lacks the rights to bind volumes and collect garbage
        `--root-ca-file=${files.ca}`,
        `--service-account-private-key-file=${files.serviceAccountKey}`,
        `--cluster-signing-cert-file=${files.ca}`,
        `--cluster-signing-key-file=${files.caKey}`,
        '--node-monitor-period=2s',
        '--node-monitor-grace-period=12s',
        '--horizontal-pod-autoscaler-sync-period=2s',
      ],
    ),
  );
  const scheduler = options.scheduler
    ? stack.use(await startComponent(assets, 'kube-scheduler', await kubeconfig('system:kube-scheduler'), []))
    : undefined;

  await cluster.waitFor('/api/v1/namespaces/default/serviceaccounts/default', () => true);
  const owned = stack.move();
  return {
    ...{ cluster, pki, etcd: etcd.part, apiserver, controllerManager, scheduler },
    compact: () => compact(etcd.url),
    backup: async () => {
      const copy = `${etcd.data}-backup`;
      await etcd.part.stop();
      await cp(etcd.data, copy, { recursive: true });
      await etcd.part.start();
      return async () => {
        await apiserver.stop();
        await etcd.part.stop();
        await rm(etcd.data, { recursive: true });
        await cp(copy, etcd.data, { recursive: true });
        await etcd.part.start();
        await apiserver.start();
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Has the API server show a client certificate to all admission webhooks. */
async function writeAdmission(dir: string, client: { certificate: string; key: string }): Promise<string> {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const kubeConfigFile = join(dir, 'webhook-clients.kubeconfig');
  const user = {
    'client-certificate-data': base64(client.certificate),
    'client-key-data': base64(client.key),
  };
  const kubeconfig = { apiVersion: 'v1', kind: 'Config', users: [{ name: '*', user }] };
  await writeFile(kubeConfigFile, JSON.stringify(kubeconfig), { mode: 0o600 });
  const configuration = {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'WebhookAdmissionConfiguration',
    kubeConfigFile,
  };
  const plugins = ['ValidatingAdmissionWebhook', 'MutatingAdmissionWebhook'];
  const path = join(dir, 'admission.json');
  const admission = {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AdmissionConfiguration',
    plugins: plugins.map((name) => ({ name, configuration })),
  };
  await writeFile(path, JSON.stringify(admission));
  return path;
}

async function startEtcd(assets: Assets, dir: string): Promise<{ part: Part; url: string; data: string }> {
  const data = join(dir, 'etcd');
  await mkdir(data, { mode: 0o700 });
  const url = `http://127.0.0.1:${await freePort()}`;
  const peer = `http://127.0.0.1:${await freePort()}`;
  const part = await Part.start({
    name: 'etcd',
    command: await assets.path('etcd'),
    args: [
      `--data-dir=${data}`,
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      '--unsafe-no-fsync', // tests kill processes, not machines: what was written survives
      '--log-level=warn',
    ],
    ready: () => healthy(`${url}/health`),
  });
  return { part, url, data };
}

async function compact(url: string): Promise<void> {
  const ask = async (path: string, body: object) => {
    const response = await fetch(`${url}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd has answered ${response.status}: ${await response.text()}`);
    return response.text();
  };
  const answer = await ask('kv/range', { key: 'AA==' }); // of any key: it says at which revision it was given
  const revision = /"revision":"(\d+)"/.exec(answer)?.[1];
  await ask('kv/compaction', { revision, physical: true });
}

/** kube-controller-manager and kube-scheduler take the same flags and answer the same health check. */
async function startComponent(
  assets: Assets,
  name: 'kube-controller-manager' | 'kube-scheduler',
  kubeconfig: string,
  args: readonly string[],
) {
  const port = await freePort();
  return Part.start({
    name,
    command: await assets.path(name),
    args: [
      ...['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map(
        (flag) => `--${flag}=${kubeconfig}`,
      ),
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      '--leader-elect=false',
      '--profiling=false',
      '--kube-api-qps=500', // by default the tokens of its fifty controllers alone take 4 s
      '--kube-api-burst=1000',
      ...args,
    ],
    ready: () => healthy(`https://127.0.0.1:${port}/healthz`),
  });
}
