/** `make up`: runs the whole testbed in the foreground until Ctrl-C. */
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { messageOf } from '@vmwright/core';
import { Assets } from '../assets/assets.ts';
import { elapsed } from '../assets/progress.ts';
import { requireSpace } from '../process/space.ts';
import { watchCluster } from './events.ts';
import { UpFolder } from './folder.ts';
import { choosePorts, type Ports } from './ports.ts';
import { Requests } from './requests.ts';
import { Supervisor } from './supervisor.ts';
import { type Row, table } from './table.ts';
import { partsOf, prepareAssets, startTestbed, type Testbed, versionOf } from './testbed.ts';

const stop = new AbortController();
let ready = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // Exits immediately during startup and on the second signal. The run supervisor cleans up after this process.
    if (!ready || stop.signal.aborted) process.exit(130);
    stop.abort();
  });
}

process.stdout.on('error', () => process.exit(1)); // the reader of the pipe has exited

try {
  await up();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}

async function up(): Promise<void> {
  const started = performance.now();
  print('Checking ports, disk space and programs');
  const ports = await choosePorts(process.env);
  await using stack = new AsyncDisposableStack();
  const folder = new UpFolder(process.env.VMWRIGHT_UP_DIR);
  await requireSpace(tmpdir(), 'TMPDIR');
  await folder.prepare();
  stack.use(folder);
  await prepareAssets();
  stack.defer(() => print('Everything is stopped'));
  const testbed = stack.use(await startTestbed(ports, print));
  const { cluster } = testbed.controlPlane;
  const parts = partsOf(testbed);
  const { signal } = stop;
  const supervisor = new Supervisor({ parts, print, signal });
  const served = new Requests(folder.requests).serve((verb, part) => supervisor[verb](part), signal);
  process.stdout.write(`\n${table(await describe(testbed, ports))}\n\n${howTo(folder)}\n`);
  if (testbed.kubeVirt.imitated) print(`KubeVirt is imitated by kwok: ${testbed.kubeVirt.reason}`);
  // Writes the file `ready` after the table of parts was printed. A script that waits for this file then finds the
  // table in the output.
  await folder.write({
    kubeconfig: cluster.kubeconfig,
    variables: variables(testbed, ports, folder),
    programs: await programs(),
    logs: Object.fromEntries(parts.map(({ name, log }) => [name, log])),
  });
  print(`Ready after ${elapsed(performance.now() - started)}; Ctrl-C stops everything`);
  ready = true;
  await Promise.all([watchCluster(cluster, signal, print), served]);
  print('Stopping all parts');
}

function howTo({ env, logs }: UpFolder): string {
  return [
    `In another shell:  . ${env}   (sets the variables above; adds kubectl and our programs to the PATH)`,
    `Tutorial:          docs/tour.md`,
    `Logs:              ${logs}/<part>.log`,
    `Restart a part:    make restart PART=operator   (parts that exit are restarted automatically)`,
    `Stop a part:       make stop PART=operator   (stays stopped until make restart)`,
  ].join('\n');
}

async function describe(testbed: Testbed, ports: Ports): Promise<Row[]> {
  const { controlPlane, kubeVirt, vcsim, postgres, cloud } = testbed;
  const version = JSON.parse(await controlPlane.cluster.api.text('/version'));
  const kubernetes = `https://127.0.0.1:${ports.kubernetes}`;
  return [
    {
      part: 'kubernetes',
      version: String(version.gitVersion).replace(/^v/, ''),
      address: kubernetes,
      use: 'kubectl get nodes',
    },
    {
      part: 'kubevirt',
      version: kubeVirt.imitated ? 'imitated' : versionOf('virt-controller'),
      address: kubernetes,
      use: kubeVirt.imitated
        ? 'kubectl get virtualmachines.kubevirt.io (imitated by kwok because virt-controller is not available)'
        : 'kubectl get virtualmachines.kubevirt.io',
    },
    {
      part: 'vcenter',
      version: `vcsim ${versionOf('vcsim')}`,
      address: vcsim.url,
      use: 'VC_HOST, VC_USER, VC_PASS, VC_CA; fault injection: curl $VCSIM_CONTROL/faults',
    },
    {
      part: 'postgresql',
      version: '18',
      address: `127.0.0.1:${postgres.port}`,
      use: 'psql "$DATABASE_URL"',
    },
    {
      part: 'toxiproxy',
      version: versionOf('toxiproxy-server'),
      address: `http://127.0.0.1:${ports.toxiproxy}`,
      use: 'curl $TOXIPROXY_URL/proxies',
    },
    {
      part: 'cloud',
      version: 'simulated machines',
      address: cloud.url,
      use: 'curl -H "authorization: Bearer $CLOUD_API_KEY" $CLOUD_URL/servers',
    },
    {
      part: 'operator',
      version: 'from sources',
      address: operatorUrl(ports),
      use: 'kubectl get cvm,vg,otvm,vmdi -A; curl $OPERATOR_URL/metrics',
    },
    {
      part: 'mirror',
      version: 'from sources',
      address: testbed.mirror.url,
      use: 'psql "$DATABASE_URL" -c "SELECT vm_name, status FROM vms"; curl $MIRROR_URL/health/controller',
    },
  ];
}

function operatorUrl(ports: Ports): string {
  return `http://127.0.0.1:${ports.metrics}`;
}

/**
 * Returns the programs for the user's shell: our own, the Node that they need, and kubectl in the cluster's version.
 */
async function programs(): Promise<Record<string, string>> {
  const own = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
  return {
    node: process.execPath,
    kubectl: await new Assets().path('kubectl'),
    vmwright: own('operator/src/main.ts'),
    'kubectl-vmwright': own('operator/src/main.ts'),
    'ssvirt-vm-controller': own('operator/src/ssvirt-vm-controller.ts'),
    'vmwright-cloud': own('cloud/src/main.ts'),
  };
}

function variables(testbed: Testbed, ports: Ports, folder: UpFolder): Record<string, string> {
  const { vcsim, postgres, cloud } = testbed;
  return {
    VMWRIGHT_UP_DIR: folder.path,
    KUBECONFIG: folder.kubeconfig,
    VC_HOST: vcsim.host,
    VC_USER: vcsim.username,
    VC_PASS: vcsim.password,
    VC_CA: vcsim.caFile,
    VCSIM_CONTROL: vcsim.control.url,
    DATABASE_URL: postgres.url,
    CLOUD_URL: cloud.url,
    CLOUD_API_KEY: cloud.apiKey,
    VMWRIGHT_OPERATOR_URL: operatorUrl(ports),
    MIRROR_URL: testbed.mirror.url,
    TOXIPROXY_URL: `http://127.0.0.1:${ports.toxiproxy}`,
  };
}

function print(line: string): void {
  const time = new Date().toTimeString().slice(0, 8);
  process.stdout.write(`${time}  ${line}\n`);
}
