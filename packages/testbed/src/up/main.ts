/** `make up`: the whole testbed in the foreground, until Ctrl-C. */
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
    // While it starts, or at the second signal, there is nothing to wait for: the keeper clears up after this program.
    if (!ready || stop.signal.aborted) process.exit(130);
    stop.abort();
  });
}

process.stdout.on('error', () => process.exit(1)); // the reader of a pipe has ended

try {
  await up();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}

async function up(): Promise<void> {
  const started = performance.now();
  say('checking ports, disks and programs');
  const ports = await choosePorts(process.env);
  await using stack = new AsyncDisposableStack();
  const folder = new UpFolder(process.env.VMWRIGHT_UP_DIR);
  await requireSpace(tmpdir(), 'TMPDIR');
  await folder.prepare();
  stack.use(folder);
  await prepareAssets();
  stack.defer(() => say('everything is stopped'));
  const testbed = stack.use(await startTestbed(ports, say));
  const { cluster } = testbed.controlPlane;
  const parts = partsOf(testbed);
  const { signal } = stop;
  const supervisor = new Supervisor({ parts, say, signal });
  const served = new Requests(folder.requests).serve((verb, part) => supervisor[verb](part), signal);
  process.stdout.write(`\n${table(await describe(testbed, ports))}\n\n${howTo(folder)}\n`);
  if (testbed.kubeVirt.imitated) say(`KubeVirt is imitated by kwok, since ${testbed.kubeVirt.why}`);
  // After the table: a script that waits for `ready` finds the table in the log.
  await folder.write({
    kubeconfig: cluster.kubeconfig,
    variables: variables(testbed, ports, folder),
    programs: await programs(),
    logs: Object.fromEntries(parts.map(({ name, log }) => [name, log])),
  });
  say(`ready after ${elapsed(performance.now() - started)}; Ctrl-C stops everything`);
  ready = true;
  await Promise.all([watchCluster(cluster, signal, say), served]);
  say('stopping');
}

function howTo({ env, logs }: UpFolder): string {
  return [
    `In another shell:  . ${env}   (kubectl, vmwright, vmwright-cloud and the variables above)`,
    `First steps:       docs/tour.md`,
    `Logs:              ${logs}/<part>.log`,
    `Restart a part:    make restart PART=operator   (a part that ends is restarted by itself; make stop PART=… keeps it down)`,
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
        ? 'kubectl get virtualmachines (imitated by kwok: virt-controller is not available)'
        : 'kubectl get virtualmachines',
    },
    {
      part: 'vcenter',
      version: `vcsim ${versionOf('vcsim')}`,
      address: vcsim.url,
      use: 'VC_HOST, VC_USER, VC_PASS, VC_CA; faults: curl $VCSIM_CONTROL/',
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
      version: 'this one',
      address: operatorUrl(ports),
      use: 'kubectl get cvm,vg -A; curl $OPERATOR_URL/metrics',
    },
  ];
}

function operatorUrl(ports: Ports): string {
  return `http://127.0.0.1:${ports.metrics}`;
}

/** Programs for the user's shell: the Node that everything here needs, ours, and kubectl in the cluster's version. */
async function programs(): Promise<Record<string, string>> {
  const own = (name: string) => fileURLToPath(new URL(`../../../${name}/src/main.ts`, import.meta.url));
  return {
    node: process.execPath,
    kubectl: await new Assets().path('kubectl'),
    vmwright: own('operator'),
    'vmwright-cloud': own('cloud'),
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
    OPERATOR_URL: operatorUrl(ports),
    TOXIPROXY_URL: `http://127.0.0.1:${ports.toxiproxy}`,
  };
}

function say(line: string): void {
  const time = new Date().toTimeString().slice(0, 8);
  process.stdout.write(`${time}  ${line}\n`);
}
