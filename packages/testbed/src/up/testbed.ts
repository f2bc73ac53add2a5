import { randomBytes } from 'node:crypto';
import { Assets } from '../assets/assets.ts';
import { bundleOf, type Program } from '../assets/catalog.ts';
import { elapsed } from '../assets/progress.ts';
import { type Cloud, startCloud } from '../cloud/cloud.ts';
import { type ControlPlane, startControlPlane } from '../kubernetes/control-plane.ts';
import { type KubeVirt, kubeVirtPrograms, startKubeVirt } from '../kubevirt/kubevirt.ts';
import { createNode } from '../kwok/kwok.ts';
import { installOperator, startOperator } from '../operator/operator.ts';
import { type Postgres, startPostgres } from '../postgres/postgres.ts';
import type { Part } from '../process/part.ts';
import { installMirror, type MirrorPart, startMirror } from '../ssvirt/mirror.ts';
import { Ssvirt } from '../ssvirt/ssvirt.ts';
import { startToxiproxy, type Toxiproxy } from '../toxiproxy/toxiproxy.ts';
import { startVcsim, type Vcsim } from '../vcsim/vcsim.ts';
import type { Ports } from './ports.ts';
import { applySamples } from './samples.ts';

/** Everything that `make up` runs. */
export interface Testbed extends AsyncDisposable {
  readonly controlPlane: ControlPlane;
  readonly kubeVirt: KubeVirt;
  readonly vcsim: Vcsim;
  readonly postgres: Postgres;
  readonly toxiproxy: Toxiproxy;
  readonly cloud: Cloud;
  readonly operator: Part;
  readonly mirror: MirrorPart;
}

/** The operator's namespace. */
const NAMESPACE = 'vmwright-system';

/**
 * Options of the cloud. Its machines boot and stop slowly enough for state changes to be visible. The prohibited names
 * and the fault injection are those that docs/tour.md uses.
 */
const CLOUD = {
  apiKey: 'testbed-0123456789abcdef',
  config: { simulated: { bootMs: { min: 2_000, max: 5_000 }, stopMs: { min: 500, max: 2_000 } } },
  prohibited: ["root it is the superuser's", 'prod-* kept for the production network'],
  faults: true,
};

/**
 * Options of vcsim. It has the template that the samples use, and a single vSphere cluster, so that a VmGroup need not
 * name the cluster.
 */
const VCSIM = {
  password: 'vmwright',
  inventory: { standaloneHosts: 0 },
  templates: ['vm-operator-template'],
};

/** Nodes with GPUs, and the number of GPUs of each. */
const GPU_NODES = { 'gpu-1': '2', 'gpu-2': '1' };

export async function startTestbed(ports: Ports, print: (line: string) => void): Promise<Testbed> {
  await using stack = new AsyncDisposableStack();
  const starting = async <T extends AsyncDisposable>(what: string, start: () => Promise<T>): Promise<T> => {
    print(`Starting ${what}`);
    const startedAt = performance.now();
    const started = stack.use(await start());
    print(`${what} is ready (${elapsed(performance.now() - startedAt)})`);
    return started;
  };
  const controlPlane = await starting('kubernetes', () =>
    startControlPlane({ scheduler: true, port: ports.kubernetes }),
  );
  const vcsim = await starting('vcsim', () =>
    startVcsim({ ...VCSIM, port: ports.vcsim, controlPort: ports.vcsimControl }),
  );
  const postgres = await starting('postgresql', () =>
    startPostgres({ port: ports.postgres, password: randomBytes(16).toString('hex') }),
  );
  const toxiproxy = await starting('toxiproxy', () => startToxiproxy({ port: ports.toxiproxy }));
  const kubeVirt = await starting('kubevirt', () => startKubeVirt(controlPlane));
  const { cluster } = controlPlane;
  await Promise.all(
    Object.entries(GPU_NODES).map(([name, gpus]) =>
      createNode(cluster, name, { resources: { 'nvidia.com/gpu': gpus } }),
    ),
  );
  const cloud = await starting('cloud', () => startCloud({ ...CLOUD, port: ports.cloud }));
  const operator = await starting('operator', async () => {
    await cluster.kubectl(['create', 'namespace', NAMESPACE]);
    await installOperator(cluster, NAMESPACE, ports.webhook);
    const options = { webhookPort: ports.webhook, statusPort: ports.metrics };
    const controllers = { cloud, vcsim, kubevirt: true, gpuinfo: true };
    return startOperator({ cluster, namespace: NAMESPACE, ...controllers, ...options });
  });
  const mirror = await starting('mirror', async () => {
    await using ssvirt = await Ssvirt.install(postgres);
    await ssvirt.insertVm({ namespace: 'default', name: 'sample' });
    await installMirror(cluster);
    return startMirror({ cluster, database: postgres, statusPort: ports.mirror });
  });
  print('Applying config/samples');
  await applySamples(cluster);
  const owned = stack.move();
  return {
    controlPlane,
    kubeVirt,
    vcsim,
    postgres,
    toxiproxy,
    cloud,
    operator,
    mirror,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export function partsOf({
  controlPlane,
  kubeVirt,
  vcsim,
  postgres,
  toxiproxy,
  cloud,
  operator,
  mirror,
}: Testbed): readonly Part[] {
  const { etcd, apiserver, controllerManager, scheduler } = controlPlane;
  const virt = kubeVirt.imitated ? [] : [kubeVirt.virtController, kubeVirt.virtApi];
  const all = [etcd, apiserver, controllerManager, scheduler, kubeVirt.kwok, ...virt];
  return [...all, vcsim.part, postgres.part, toxiproxy.part, cloud.part, operator, mirror.part].filter(
    (part) => part !== undefined,
  );
}

/** Resolves all programs before the first part is started, because downloads and builds can take minutes. */
export async function prepareAssets(): Promise<void> {
  const needed: readonly Program[] = ['etcd', 'kube-apiserver', 'kwok', 'vcsim', 'toxiproxy-server'];
  const assets = new Assets();
  for (const program of needed) await assets.path(program);
  await kubeVirtPrograms();
}

export function versionOf(program: Program): string {
  return bundleOf(program).version;
}
