import { fileURLToPath } from 'node:url';
import { CloudClient } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import {
  ApiError,
  Assets,
  type Cloud,
  type Cluster,
  consoleCommands,
  field,
  type KubeObject,
  manifestPath,
  type Part,
  run,
  startCloud,
  startControlPlane,
  startDeployedOperator,
} from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { page, ROOT, sectionOf, wordsOf } from './doc-commands.ts';
import { QUICK_ELECTION, SYSTEM } from './installed.ts';
import { helmTemplate, kustomized, type Manifest, nameOf } from './rendered.ts';
import { VMS } from './with-cloud.ts';
import { GROUPS } from './with-vcenter.ts';

/*
 * Installs the shipped manifests and chart with the commands of docs/install.md. The tests share a control plane and
 * build on each other.
 */

const PAGE = page('install.md');
/** An early state of the chart (fixtures/README.md). Its CRD of VMs lacks the column `Message`. */
const FIRST_CHART = fileURLToPath(new URL('fixtures/vmwright-0.1.0.tgz', import.meta.url));
/** Arguments of kubectl that validate manifests on the API server and change nothing. */
const STRICT = ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '--validate=strict'];
const QUICK = [...QUICK_ELECTION, '--vm-refresh=1s'];

const stack = new AsyncDisposableStack();
let cluster: Cluster;
let cloud: Cloud;
let client: CloudClient;
let helm: string;

beforeAll(async () => {
  cloud = stack.use(await startCloud({ prohibited: ['vmforbidden'] }));
  client = stack.use(new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: cloud.apiKey }));
  ({ cluster } = stack.use(await startControlPlane({ endpointRouting: true })));
  helm = await new Assets().path('helm');
  const stop = new AbortController();
  const pods = runPods(stop.signal);
  stack.defer(async () => {
    stop.abort();
    await pods.catch(() => undefined);
  });
}, 120_000);
afterAll(() => stack.disposeAsync());

/** Runs a documented command. */
async function execute(line: string): Promise<string> {
  const command = line.replace('an-api-key', cloud.apiKey).replace('https://cloud.example:8480', cloud.url);
  const [program, ...args] = wordsOf(command.replace(/(?<=\s)(?=(config|charts)\/)/g, ROOT));
  if (program === 'kubectl') return (await cluster.kubectl(args)).stdout;
  if (program !== 'helm') throw new Error(`the test does not know the program of "${line}"`);
  return (await run(helm, args, { env: { ...process.env, KUBECONFIG: cluster.kubeconfig } })).stdout;
}

/** Runs the commands of a section of docs/install.md, from the index `first` to the index `end` (exclusive). */
async function follow(heading: string, first = 0, end?: number): Promise<void> {
  const commands = consoleCommands(sectionOf(PAGE, heading)).slice(first, end);
  expect(commands).not.toEqual([]);
  for (const { line } of commands) await execute(line);
}

/**
 * Reports the operator's pods as Ready in place of a kubelet. They get no address, so no Service sends them requests.
 */
async function runPods(signal: AbortSignal): Promise<void> {
  const selector = 'labelSelector=app.kubernetes.io%2Fname%3Dvmwright';
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }];
  for await (const { type, object } of cluster.api.watch(`/api/v1/pods?${selector}`, signal)) {
    const { namespace, name } = object.metadata;
    if (type !== 'ADDED') continue;
    const status = { phase: 'Running', conditions };
    await cluster.api
      .merge(`/api/v1/namespaces/${namespace}/pods/${name}/status`, { status })
      .catch((error: unknown) => {
        if (!(error instanceof ApiError && error.status === 404)) throw error; // the pod was deleted
      });
  }
}

const startOperator = async () => stack.use(await startDeployedOperator(cluster, SYSTEM, QUICK));
/** Sets the address of the cloud, as a user's overlay does. */
const configure = () => {
  const metadata = { name: 'vmwright-config', namespace: SYSTEM };
  const data = { 'config.yaml': `cloud-url: ${cloud.url}\n` };
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
  return cluster.kubectl(['apply', '--server-side', '-f', '-'], { input });
};
const vmsIn = (namespace: string) => VMS.replace('/default/', `/${namespace}/`);
const create = (name: string, vmname = `vm${name}`, namespace = 'default') =>
  cluster.api.create(vmsIn(namespace), {
    apiVersion: 'samplecontroller.k8s.io/v1alpha1',
    kind: 'VM',
    metadata: { name },
    spec: { vmname },
  });
const running = (name: string, namespace = 'default') =>
  cluster.waitFor(`${vmsIn(namespace)}/${name}`, (vm) => field(vm, 'status', 'opStatus') === 'Running');
const machines = async () => {
  const names: string[] = [];
  for await (const servers of client.list()) names.push(...servers.map(({ name }) => name));
  return names;
};
const crds = async () =>
  (await cluster.api.list('/apis/apiextensions.k8s.io/v1/customresourcedefinitions')).map(
    ({ metadata }) => metadata.name,
  );

describe('with kustomize', () => {
  let operator: Part;

  test('config/default can be applied to an empty cluster, and its restricted namespace admits the pods', async () => {
    await follow('Install with kustomize');
    const applied = await cluster.kubectl([
      'get',
      'crd',
      '-l',
      'app.kubernetes.io/name=vmwright',
      '-o',
      'name',
    ]);
    expect(applied.stdout.trim().split('\n')).toHaveLength(5);
  });

  test.each([
    'default',
    'overlays/development',
    'overlays/vm',
    'overlays/namespaces',
    'ssvirt',
    'ssvirt-sharding',
  ])('config/%s passes strict validation without warnings', async (folder) => {
    for (const name of ['team-a', 'team-b', 'ssvirt-system']) await cluster.apply(restricted(name));
    const result = await cluster.tryKubectl([...STRICT, '-k', `${ROOT}config/${folder}`]);
    expect(result).toMatchObject({ code: 0, stderr: '' });
  });

  describe('with the CRDs of cert-manager and of the Prometheus operator', () => {
    const THEIRS = ['cert-manager-crds', 'prometheus-operator-crds'].flatMap((name) => [
      '-f',
      manifestPath(name),
    ]);
    const GROUP = /^(cert-manager\.io|monitoring\.coreos\.com)\//;

    beforeAll(async () => {
      await cluster.kubectl(['apply', '--server-side', ...THEIRS]);
      await cluster.kubectl(['wait', '--for=condition=Established', ...THEIRS]);
    });
    afterAll(() => cluster.kubectl(['delete', ...THEIRS]));

    test('config/overlays/all passes strict validation against the CRDs of cert-manager and the Prometheus operator', async () => {
      const theirs = (await kustomized('overlays/all')).filter(({ apiVersion }) => GROUP.test(apiVersion));
      expect(theirs.map(nameOf).toSorted()).toEqual([
        'Certificate vmwright-system/vmwright-webhook',
        'Issuer vmwright-system/vmwright-selfsigned',
        'PrometheusRule vmwright-system/vmwright',
        'ServiceMonitor vmwright-system/vmwright',
      ]);
      const result = await cluster.tryKubectl([...STRICT, '-k', `${ROOT}config/overlays/all`]);
      expect(result).toMatchObject({ code: 0, stderr: '' });
    });

    test('the chart with a ClusterIssuer and labels for Prometheus passes strict validation', async () => {
      const values = [
        'certManager.enabled=true,certManager.issuerRef.kind=ClusterIssuer,certManager.issuerRef.name=internal',
        'serviceMonitor.enabled=true,serviceMonitor.labels.release=prometheus',
        'prometheusRule.enabled=true,prometheusRule.labels.release=prometheus',
      ];
      const rendered = await helmTemplate(...values.map((each) => `--set=${each}`));
      const input = (manifests: readonly Manifest[]) =>
        manifests.map((each) => JSON.stringify(each)).join('\n---\n');
      const dryRun = (manifests: readonly Manifest[]) =>
        cluster.tryKubectl([...STRICT, '-f', '-'], { input: input(manifests) });
      expect(await dryRun(rendered)).toMatchObject({ code: 0, stderr: '' });
      const certificate = rendered.find(({ kind }) => kind === 'Certificate');
      const wrong = JSON.parse(JSON.stringify(certificate).replace('"dnsNames"', '"dnsName"'));
      expect((await dryRun([wrong])).stderr).toContain('.spec.dnsName: field not declared in schema');
    });
  });

  test('without a ready replica, VMs are rejected, but other objects can be created', async () => {
    await expect(create('early')).rejects.toThrow('no endpoints available for service "vmwright-webhook"');
    await cluster.kubectl(['create', 'configmap', 'unaffected']);
  });

  test('the API server reaches the admission and conversion webhooks through the Service', async () => {
    await configure();
    operator = await startOperator();
    // The API server notices a moment later that the operator has written its CA and its endpoint.
    const refused = () => create('refused', 'vmforbidden').then(() => 'accepted', String);
    await expect.poll(refused).toContain('The name "vmforbidden" is prohibited.');
    await create('first');
    await running('first');
    await cluster.api.create(GROUPS, groupNamed('group'));
    const old = await cluster.api.get(`${GROUPS.replace('v1beta1', 'v1alpha1')}/group`);
    expect(old.apiVersion).toBe('vm.codeconnect.vmworld.com/v1alpha1');
  });

  test('the second replica takes over when the leader is killed', async () => {
    const leader = operator;
    operator = await startOperator();
    await leader.kill();
    await create('second');
    await running('second');
  });

  test('uninstalling in the documented order leaves no machine, object or finalizer behind', async () => {
    await follow('Uninstall', 0, 2);
    expect(await machines()).toEqual([]);
    await operator.stop();
    await execute('kubectl delete -k config/default');
    expect(await crds()).toEqual([]);
    await cluster.waitForGone(`/api/v1/namespaces/${SYSTEM}`);
    for (const type of ['validating', 'mutating'])
      expect(
        await cluster.api.list(`/apis/admissionregistration.k8s.io/v1/${type}webhookconfigurations`),
      ).toEqual([]);
    const roles = await cluster.kubectl(['get', 'clusterroles,clusterrolebindings', '-o', 'name']);
    expect(roles.stdout).not.toContain('vmwright');
  });
});

describe('with Helm', () => {
  let operator: Part;
  let before: readonly KubeObject[];
  const objects = async () => [...(await cluster.api.list(VMS)), ...(await cluster.api.list(GROUPS))];

  test('the chart can be installed', async () => {
    for (const { line } of consoleCommands(sectionOf(PAGE, 'Install with Helm')))
      await execute(line.replace('charts/vmwright', FIRST_CHART));
    operator = await startOperator();
    await create('kept');
    await running('kept');
    await cluster.api.create(GROUPS, groupNamed('group'));
    before = await objects();
  });

  test('an upgrade from the first version of the chart updates the CRDs and keeps all objects', async () => {
    const columns = async () =>
      (
        await cluster.kubectl([
          'get',
          'crd',
          'vms.samplecontroller.k8s.io',
          '-o',
          'jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}',
        ])
      ).stdout;
    const first = await columns();
    await follow('Upgrade');
    expect(await columns()).not.toBe(first);
    expect((await objects()).map(identity)).toEqual(before.map(identity));
    expect(await machines()).toEqual(['vmkept']);
    await operator.stop();
    operator = await startOperator();
    await create('new');
    await running('new');
  });

  test('with watchNamespaces, the operator works in these namespaces, and has no access to others', async () => {
    await operator.stop();
    await follow('Limit vmwright to namespaces', 2);
    const question = ['auth', 'can-i', 'list', 'vms.samplecontroller.k8s.io'];
    const as = `--as=system:serviceaccount:${SYSTEM}:vmwright`;
    const may = async (namespace: string) =>
      (await cluster.tryKubectl([...question, as, '-n', namespace])).stdout.trim();
    // The API server authorizes requests according to its caches, which get the new roles a moment later.
    await expect
      .poll(() => Promise.all(['team-a', 'team-b', 'default'].map(may)))
      .toEqual(['yes', 'yes', 'no']);
    {
      await using _ = await startOperator();
      await create('limited', 'vmlimited', 'team-a');
      await running('limited', 'team-a');
      await cluster.kubectl(['-n', 'team-a', 'delete', 'vms.samplecontroller.k8s.io', 'limited']);
    }
    expect((await machines()).toSorted()).toEqual(['vmkept', 'vmnew']);
    await execute(
      'helm upgrade vmwright charts/vmwright --namespace vmwright-system --reset-then-reuse-values --set-json watchNamespaces=[]',
    );
    operator = await startOperator();
  });

  test('uninstalling the chart keeps the CRDs, and the last documented command deletes them', async () => {
    await follow('Uninstall', 0, 2);
    expect(await machines()).toEqual([]);
    await operator.stop();
    await follow('Uninstall', 2, 3);
    expect(await crds()).toHaveLength(5);
    await follow('Uninstall', 3);
    expect(await crds()).toEqual([]);
  });
});

describe('uninstalling in another order', () => {
  test('if a CRD is deleted while no operator runs, a new installation deletes the objects of the CRD and their machines', async () => {
    await follow('Install with kustomize');
    await configure();
    const operator = await startOperator();
    await create('left');
    await running('left');
    await operator.stop();
    await cluster.kubectl(['delete', 'crd', 'vms.samplecontroller.k8s.io', '--wait=false']);
    await follow('The CRDs were deleted first', 0, 1);
    await configure();
    await operator.start();
    await follow('The CRDs were deleted first', 1);
    expect(await machines()).toEqual([]);
    await operator.stop();
  });

  test('if the namespace of the operator is deleted first and then an object, a new installation deletes the object and its machine', async () => {
    const HEADING = 'The namespace was deleted first';
    await follow(HEADING, 0, 2);
    await configure();
    const first = await startOperator();
    await create('left');
    await running('left');
    await first.stop();
    await cluster.kubectl(['delete', 'namespace', SYSTEM]);
    await cluster.kubectl(['delete', 'vms.samplecontroller.k8s.io', 'left', '--wait=false']);
    // The API server notices a moment later that the Service is gone. Until then, its error is about missing endpoints.
    const rejected = () => create('rejected').then(() => 'accepted', String);
    await expect.poll(rejected).toContain('service "vmwright-webhook" not found');
    expect(await machines()).toEqual(['vmleft']);
    await follow(HEADING, 0, 2);
    await configure();
    await execute(consoleCommands(sectionOf(PAGE, 'Install with kustomize'))[1]?.line ?? '');
    const second = await startOperator();
    await cluster.waitForGone(`${VMS}/left`);
    expect(await machines()).toEqual([]);
    await create('abandoned');
    await running('abandoned');
    await second.stop();
    // The documented last resort: remove the finalizer without an operator. The machine stays.
    await cluster.kubectl(['delete', 'namespace', SYSTEM]);
    await cluster.kubectl(['delete', 'vms.samplecontroller.k8s.io', 'abandoned', '--wait=false']);
    await follow(HEADING, 2);
    await cluster.waitForGone(`${VMS}/abandoned`);
    expect(await machines()).toEqual(['vmabandoned']);
  });
});

function groupNamed(name: string): object {
  return {
    apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
    kind: 'VmGroup',
    metadata: { name },
    spec: { replicas: 1, cpu: 1, memory: 1, template: 'none' },
  };
}

/** Returns the fields that an upgrade must not change. */
function identity({ kind, metadata: { name, uid }, spec }: KubeObject): object {
  return { kind, name, uid, spec };
}

/**
 * Returns a namespace that enforces the Pod Security profile `restricted`, and warns about workloads that violate it.
 */
function restricted(name: string): string {
  const labels = {
    'pod-security.kubernetes.io/enforce': 'restricted',
    'pod-security.kubernetes.io/warn': 'restricted',
  };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
}
