/** `make up`: the whole testbed in the foreground, until Ctrl-C. */
import { tmpdir } from 'node:os';
import { Assets } from '../assets/assets.ts';
import { elapsed } from '../assets/progress.ts';
import { messageOf } from '../errors.ts';
import { requireSpace } from '../process/space.ts';
import { watchEvents, watchParts } from './events.ts';
import { UpFolder } from './folder.ts';
import { choosePorts, type Ports } from './ports.ts';
import { type Row, table } from './table.ts';
import { partsOf, prepareAssets, startTestbed, type Testbed, versionOf } from './testbed.ts';

const stop = new AbortController();
let ready = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // While it starts, or when asked twice, there is nothing to wait for: the keeper clears up behind this program.
    if (!ready || stop.signal.aborted) process.exit(130);
    stop.abort();
  });
}

process.stdout.on('error', () => process.exit(1)); // whoever read it has left

try {
  await up();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}

async function up(): Promise<void> {
  const started = performance.now();
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
  const rows = await describe(testbed, ports, folder);
  process.stdout.write(`\n${table(rows)}\n\n`);
  process.stdout.write(`All of it in a shell:  . ${folder.env}\n`);
  if (testbed.kubeVirt.imitated) say(`KubeVirt is imitated by kwok, since ${testbed.kubeVirt.why}`);
  // After the table: who waits for `ready` in a script finds it in the log already.
  await folder.write(cluster.kubeconfig, await variables(testbed, ports, folder));
  say(`ready after ${elapsed(performance.now() - started)}; Ctrl-C stops everything`);
  ready = true;
  watchParts(partsOf(testbed), stop.signal, say);
  await watchEvents(cluster, stop.signal, say);
  say('stopping');
}

async function describe(testbed: Testbed, ports: Ports, folder: UpFolder): Promise<Row[]> {
  const { controlPlane, kubeVirt, vcsim, postgres, cloud } = testbed;
  const version = JSON.parse(await controlPlane.cluster.api.text('/version'));
  const kubernetes = `https://127.0.0.1:${ports.kubernetes}`;
  return [
    {
      part: 'kubernetes',
      version: String(version.gitVersion).replace(/^v/, ''),
      address: kubernetes,
      use: `export KUBECONFIG=${folder.kubeconfig}; kubectl get nodes`,
    },
    {
      part: 'kubevirt',
      version: kubeVirt.imitated ? 'imitated' : versionOf('virt-controller'),
      address: kubernetes,
      use: kubeVirt.imitated
        ? 'kubectl get virtualmachines (by kwok; virt-controller is not to be had)'
        : 'kubectl get virtualmachines',
    },
    {
      part: 'vcenter',
      version: `vcsim ${versionOf('vcsim')}`,
      address: vcsim.url,
      use: 'VC_HOST, VC_USER, VC_PASS; faults: curl $VCSIM_CONTROL/',
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
      address: kubernetes,
      use: 'kubectl get vm',
    },
  ];
}

async function variables(testbed: Testbed, ports: Ports, folder: UpFolder): Promise<Record<string, string>> {
  const { vcsim, postgres, cloud } = testbed;
  return {
    KUBECONFIG: folder.kubeconfig,
    KUBECTL: await new Assets().path('kubectl'),
    VC_HOST: vcsim.host,
    VC_USER: vcsim.username,
    VC_PASS: vcsim.password,
    VCSIM_CONTROL: vcsim.control.url,
    DATABASE_URL: postgres.url,
    CLOUD_URL: cloud.url,
    CLOUD_API_KEY: cloud.apiKey,
    TOXIPROXY_URL: `http://127.0.0.1:${ports.toxiproxy}`,
  };
}

function say(line: string): void {
  const time = new Date().toTimeString().slice(0, 8);
  process.stdout.write(`${time}  ${line}\n`);
}
