import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Assets } from '../assets/assets.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort, portFor } from '../process/ports.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { type AuditedRequest, AuditLog } from './audit-log.ts';
import { Cluster } from './cluster.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { Pki } from './pki.ts';

export interface ControlPlaneOptions {
  /** Starts kube-scheduler as well. @default false */
  readonly scheduler?: boolean;
  /** Port of the API server. @default a free port */
  readonly port?: number;
  /**
   * Common name of the client certificate that the API server presents to webhooks. `pki.ca` issues the certificate.
   * @default no certificate
   */
  readonly webhookClientName?: string;
  /**
   * Whether the API server sends requests for a Service to the endpoints in the Service's EndpointSlices. If false, it
   * sends them to the Service's cluster IP, which is unreachable because no kube-proxy runs. If true, ExternalName
   * Services do not work, so `startKubeVirt` cannot be used.
   * @default false
   */
  readonly endpointRouting?: boolean;
  /** `ControlPlane.audited` returns the requests of these users. @default none */
  readonly audit?: readonly string[];
}

/**
 * A private Kubernetes control plane: etcd, kube-apiserver with RBAC, aggregation and webhooks, and
 * kube-controller-manager, so that garbage collection, namespace deletion and service accounts are real.
 */
export interface ControlPlane extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly pki: Pki;
  readonly etcd: Part;
  readonly apiserver: Part;
  readonly controllerManager: Part;
  readonly scheduler: Part | undefined;
  /**
   * Returns the requests that were sent by users in the option `audit` and that got a response. Includes watches that
   * have not ended.
   */
  audited(): Promise<readonly AuditedRequest[]>;
  /**
   * Compacts etcd, as the API server does every five minutes. Watches from older resource versions then fail with 410.
   */
  compact(): Promise<void>;
  /**
   * Stores a custom resource directly in etcd. The API server would need several milliseconds of CPU for each write.
   * Clients that watch through the API server receive the object.
   * @param key such as `kubevirt.io/virtualmachines/<namespace>/<name>`
   * @param json the object as the API server would store it: complete, without `resourceVersion`
   */
  store(key: string, json: string): Promise<void>;
  /**
   * Stops etcd, copies its data, and starts it again.
   * @returns a function that restores the copy; it stops and restarts etcd and the API server
   */
  backup(): Promise<() => Promise<void>>;
}

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  await using stack = new AsyncDisposableStack();
  const assets = new Assets();
  const dir = await RunSupervisor.shared.folder('kubernetes');
  stack.defer(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }));
  const audit = await AuditLog.create(dir, options.audit ?? []);
  stack.defer(() => audit?.search());
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
        // Extension API servers authenticate users by the headers that these flags configure. Without the flags, they
        // reject all requests.
        `--requestheader-client-ca-file=${files.frontProxyCa}`,
        '--requestheader-allowed-names=front-proxy',
        '--requestheader-username-headers=X-Remote-User',
        '--requestheader-group-headers=X-Remote-Group',
        '--requestheader-extra-headers-prefix=X-Remote-Extra-',
        `--proxy-client-cert-file=${files.frontProxy}`,
        `--proxy-client-key-file=${files.frontProxyKey}`,
        '--allow-privileged=true',
        // Reconciler types other than `none` would give the Service `kubernetes` the endpoint 127.0.0.1. Endpoints with
        // loopback addresses are invalid.
        '--endpoint-reconciler-type=none',
        '--profiling=false',
        ...(options.endpointRouting ? ['--enable-aggregator-routing=true'] : []),
        ...(audit?.flags ?? []),
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
        // Each controller uses its own service account, because the user system:kube-controller-manager may neither
        // bind volumes nor collect garbage.
        '--use-service-account-credentials=true',
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
    cluster,
    pki,
    etcd: etcd.part,
    apiserver,
    controllerManager,
    scheduler,
    audited: async () => (await audit?.requests()) ?? [],
    compact: () => compact(etcd.url),
    store: async (key, json) => {
      await postTo(etcd.url, 'kv/put', { key: base64(`/registry/${key}`), value: base64(json) });
    },
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

/** Writes the admission configuration that makes the API server present a client certificate to all webhooks. */
async function writeAdmission(dir: string, client: { certificate: string; key: string }): Promise<string> {
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
      '--unsafe-no-fsync', // tests kill processes and not machines, so written data survives without fsync
      '--log-level=warn',
    ],
    ready: () => healthy(`${url}/health`),
  });
  return { part, url, data };
}

async function compact(url: string): Promise<void> {
  const range = await postTo(url, 'kv/range', { key: 'AA==' }); // any key; only the revision in the response header is used
  const revision = /"revision":"(\d+)"/.exec(range)?.[1];
  await postTo(url, 'kv/compaction', { revision, physical: true });
}

/** Calls etcd's JSON gateway. @returns the response */
async function postTo(url: string, path: string, body: object): Promise<string> {
  const response = await fetch(`${url}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd returned status ${response.status}: ${await response.text()}`);
  return response.text();
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Starts kube-controller-manager or kube-scheduler, which share these flags and the health check. */
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
      '--kube-api-qps=500', // with the default, it takes 4 s to fetch the tokens of the fifty controllers
      '--kube-api-burst=1000',
      ...args,
    ],
    ready: () => healthy(`https://127.0.0.1:${port}/healthz`),
  });
}
