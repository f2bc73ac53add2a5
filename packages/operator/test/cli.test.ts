import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CloudClient } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import {
  Assets,
  type Cloud,
  canary,
  consoleCommands,
  credentialsIn,
  field,
  type KubeObject,
  Ssvirt,
  shapeOf,
  startCloud,
  startPostgres,
  startVcsim,
  temporaryFolder,
  type Vcsim,
} from '@vmwright/testbed';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type CommandResult, pluginPath, run, vmwright } from './command-line.ts';
import { page, ROOT } from './doc-commands.ts';
import { type Installed, installed, SYSTEM } from './installed.ts';
import { VMS } from './with-cloud.ts';
import { FARM, PATHS, WORK } from './with-kubevirt.ts';
import { GROUPS, TEMPLATE } from './with-vcenter.ts';

const DATABASE_PASSWORD = canary('database-password');
const CLUSTER_ID = 'cli-test';

const stack = new AsyncDisposableStack();
let env: Installed;
let cloud: Cloud;
let vcsim: Vcsim;
let database: string;
/** Output of all commands so far. */
let printed = '';
let admin: Readonly<Record<string, string>>;
let operator: Readonly<Record<string, string>>;
let operatorUrl: string;

beforeAll(async () => {
  cloud = stack.use(await startCloud({ prohibited: ['vmforbidden'] }));
  vcsim = stack.use(
    await startVcsim({
      inventory: { standaloneHosts: 0, vms: 2 },
      templates: [TEMPLATE],
    }),
  );
  const postgres = stack.use(await startPostgres());
  stack.use(await Ssvirt.install(postgres));
  const superuser = new pg.Client({ connectionString: postgres.url });
  await superuser.connect();
  await superuser.query(`CREATE ROLE checker LOGIN SUPERUSER PASSWORD '${DATABASE_PASSWORD}'`);
  await superuser.end();
  const url = new URL(postgres.url);
  database = Object.assign(url, { username: 'checker', password: DATABASE_PASSWORD }).href;
  const args = ['--vm-refresh=1s', '--vm-sweep=1s', `--cluster-id=${CLUSTER_ID}`];
  env = await installed(stack, { cloud, vcsim, kubevirt: true, args });
  const { cluster } = env.controlPlane;
  const log = await readFile(env.operator.log, 'utf8');
  operatorUrl = `http://127.0.0.1:${/"msg":"Serving metrics, health[^\n]*"port":(\d+)/.exec(log)?.[1]}`;
  admin = { KUBECONFIG: cluster.kubeconfig };
  operator = {
    KUBECONFIG: await cluster.kubeconfigFor({ namespace: SYSTEM, name: 'vmwright' }),
    CLOUD_URL: cloud.url,
    CLOUD_API_KEY: cloud.apiKey,
    VC_HOST: vcsim.host,
    VC_USER: vcsim.username,
    VC_PASS: vcsim.password,
    VC_CA: vcsim.caFile,
    DATABASE_URL: database,
  };
  await createObjects();
}, 240_000);
afterAll(() => stack.disposeAsync());

/** Creates objects of every kind except GPUInfo. Some become ready, the others are blocked. */
async function createObjects(): Promise<void> {
  const { cluster } = env.controlPlane;
  const { api } = cluster;
  for (const namespace of [WORK, FARM]) await cluster.kubectl(['create', 'namespace', namespace]);
  await api.create(VMS, {
    apiVersion: 'samplecontroller.k8s.io/v1alpha1',
    kind: 'VM',
    metadata: { name: 'web' },
    spec: { vmname: 'web' },
  });
  const group = (name: string, template: string, replicas: number) => ({
    apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
    kind: 'VmGroup',
    metadata: { name },
    spec: { replicas, cpu: 1, memory: 1, template },
  });
  await api.create(GROUPS, group('web', TEMPLATE, 3));
  await api.create(GROUPS, group('lost', 'no-such-template', 1));
  await api.create(PATHS.images, {
    apiVersion: 'crd.pelotech.ot/v1alpha1',
    kind: 'VMDiskImage',
    metadata: { name: 'base' },
    spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi' },
  });
  const machine = (name: string, image: string) => ({
    apiVersion: 'pelotech.ot/v1alpha1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: {
      resources: { cpu: 1, memory: '1Gi', diskSize: '2Gi' },
      vmDiskImageRef: { name: image, namespace: FARM },
      users: [{ name: 'demo', plain_text_passwd: canary('machine-password'), lock_passwd: false }],
    },
  });
  await api.create(PATHS.machines, machine('web', 'base'));
  await api.create(PATHS.machines, machine('waiting', 'missing'));
  const isReady = (object: KubeObject) => condition(object)?.status === 'True';
  await cluster.waitFor(`${VMS}/web`, isReady);
  await cluster.waitFor(`${GROUPS}/web`, isReady);
  await cluster.waitFor(`${GROUPS}/lost`, (object) => condition(object)?.reason === 'NotFound');
  await cluster.waitFor(`${PATHS.machines}/web`, isReady);
  await cluster.waitFor(`${PATHS.machines}/waiting`, (object) => condition(object)?.status === 'False');
}

function condition(object: KubeObject): { readonly status: unknown; readonly reason: unknown } | undefined {
  const all = [field(object, 'status', 'conditions') ?? []].flat();
  const ready = all.find((each) => field(each, 'type') === 'Ready');
  return ready && { status: field(ready, 'status'), reason: field(ready, 'reason') };
}

/** Runs a command and adds its output to `printed`, which the last test searches for secrets. */
async function call(
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<CommandResult> {
  const result = await vmwright(args, variables);
  printed += result.stdout + result.stderr;
  return result;
}

const SETTINGS = [`--cluster-id=${CLUSTER_ID}`, '--vm-sweep=1s'];

describe('vmwright check', () => {
  test('vmwright check passes with the operator’s service account and settings, and prints one line per check', async () => {
    const { code, stdout, stderr } = await call(['check', ...SETTINGS], operator);
    expect({ code, stderr, failures: stdout.match(/^✗.*$/gm) }).toEqual({
      code: 0,
      stderr: '',
      failures: null,
    });
    expect(stdout).toMatch(/^✓ cluster: Kubernetes v1\.\d+\.\d+ answers$/m);
    expect(stdout).toMatch(/^✓ permissions: all \d+ permissions are granted to you$/m);
    expect(stdout).toMatch(
      /^✓ webhook validate\.v1alpha1\.vms\.samplecontroller\.k8s\.io: CA is valid until 20/m,
    );
    expect(stdout).toContain(`✓ cloud ${cloud.url}: answers and accepts the API key\n`);
    expect(stdout).toMatch(/^✓ vCenter default: answers and accepts the credentials/m);
    expect(stdout).toMatch(/^✓ database: \S+ on \S+ has the schema of SSVirt$/m);
    expect(stdout).toMatch(/\nAll checks passed\.\n$/);
  });

  test('vmwright check --service-account, run by an administrator, checks the service account of the operator', async () => {
    const args = ['check', '--service-account', '-o', 'json', ...SETTINGS];
    const { code, stdout } = await call(args, { ...operator, ...admin });
    const results: { name: string; state: string; detail: string }[] = JSON.parse(stdout);
    expect(results).toContainEqual({
      name: 'crd vms.samplecontroller.k8s.io',
      state: 'passed',
      detail: 'matches this version of vmwright',
    });
    expect(results.find(({ name }) => name === 'permissions')?.detail).toMatch(
      /granted to system:serviceaccount:vmwright-system:vmwright$/,
    );
    for (const kind of ['VM', 'VMDiskImage', 'VmGroup (conversion)'])
      expect(results).toContainEqual({
        name: `webhook of ${kind}`,
        state: 'passed',
        detail: 'the API server reaches the operator',
      });
    expect(code).toBe(0);
  });

  test('vmwright check fails if no controller can run', async () => {
    const { code, stdout } = await call(['check', '--controllers=-kubevirt,-gpuinfo'], admin);
    expect([code, stdout]).toEqual([1, expect.stringContaining('✗ controllers: no controller can run\n')]);
  });

  test('vmwright check skips the conversion webhook if no VmGroup exists', async () => {
    const args = ['check', '-o', 'json', '--namespaces=kube-public', ...SETTINGS];
    const { stdout } = await call(args, { ...operator, ...admin });
    expect(JSON.parse(stdout)).toContainEqual({
      name: 'webhook of VmGroup (conversion)',
      state: 'skipped',
      detail: 'no VmGroup exists, so the API server has nothing to convert',
    });
  });

  test('vmwright check reports each problem with its remedy, and exits with code 1', async () => {
    const { cluster } = env.controlPlane;
    await cluster.kubectl(['create', 'serviceaccount', 'nobody', '-n', SYSTEM]);
    const nobody = { KUBECONFIG: await cluster.kubeconfigFor({ namespace: SYSTEM, name: 'nobody' }) };
    const wrong = await call(['check', ...SETTINGS], {
      ...operator,
      ...nobody,
      CLOUD_API_KEY: 'wrong-key-0123456789',
    });
    expect(wrong.code).toBe(1);
    expect(wrong.stdout).toMatch(
      /^✗ permission list vms\.samplecontroller\.k8s\.io: not granted to you\n {4}bind the shipped roles/m,
    );
    expect(wrong.stdout).toMatch(/^✗ cloud .*\n {4}check CLOUD_URL, CLOUD_API_KEY and CLOUD_CA/m);
    const crd = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/vms.samplecontroller.k8s.io';
    const versions = [field(await cluster.api.get(crd), 'spec', 'versions')].flat();
    const changed = JSON.parse(JSON.stringify(versions));
    changed[0].schema.openAPIV3Schema.properties.spec.properties.vmname.description = 'older';
    await cluster.api.merge(crd, { spec: { versions: changed } });
    try {
      const { code, stdout } = await call(['check', ...SETTINGS], { ...operator, ...admin });
      expect(code).toBe(1);
      expect(stdout).toMatch(
        /^✗ crd vms\.samplecontroller\.k8s\.io: differs from this version of vmwright\n {4}apply the CRDs/m,
      );
    } finally {
      await cluster.api.merge(crd, { spec: { versions } });
    }
  });

  test('vmwright check fails if the validating webhook of a checked controller is missing', async () => {
    const { api } = env.controlPlane.cluster;
    const folder = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
    const { apiVersion, kind, webhooks } = await api.get(`${folder}/vmwright`);
    const variables = { ...operator, ...admin };
    const others = [webhooks ?? []].flat().filter((each) => !String(field(each, 'name')).includes('.vms.'));
    await api.merge(`${folder}/vmwright`, { webhooks: others });
    try {
      const part = await call(['check', ...SETTINGS], variables);
      expect(part.code).toBe(1);
      expect(part.stdout.match(/^✗.*\n.*$/gm)).toEqual([
        '✗ webhook validate.v1alpha1.vms.samplecontroller.k8s.io: is missing from the ValidatingWebhookConfiguration vmwright\n    apply the manifests of this version: vmwright manifests | kubectl apply --server-side -f -',
      ]);
      await api.delete(`${folder}/vmwright`);
      const { code, stdout } = await call(['check', ...SETTINGS], variables);
      expect([code, stdout]).toEqual([
        1,
        expect.stringContaining('✗ webhooks: the ValidatingWebhookConfiguration vmwright does not exist\n'),
      ]);
      const limited = await call(['check', '--controllers=vmgroup', ...SETTINGS], variables);
      expect([limited.code, limited.stdout]).toEqual([0, expect.stringContaining('All checks passed.')]);
    } finally {
      await api.delete(`${folder}/vmwright`).catch(() => undefined);
      await api.create(folder, { apiVersion, kind, metadata: { name: 'vmwright' }, webhooks });
    }
    // The API server calls the restored webhooks only after a moment. The next test needs them.
    const vm = { apiVersion: 'samplecontroller.k8s.io/v1alpha1', kind: 'VM', metadata: { name: 'rejected' } };
    const rejected = () =>
      api.create(`${VMS}?dryRun=All`, { ...vm, spec: { vmname: 'vmforbidden' } }).then(() => '', String);
    await expect.poll(rejected).toContain('The name "vmforbidden" is prohibited.');
  });

  test('while the operator is down, vmwright check reports the failing webhook, and vmwright why the missing leader', async () => {
    await env.operator.stop();
    try {
      const { code, stdout } = await call(['check', ...SETTINGS], { ...operator, ...admin });
      expect(code).toBe(1);
      expect(stdout).toMatch(
        /^✗ webhook of VM: .*failed calling webhook.*\n {4}check that the operator runs/m,
      );
      const { stdout: explained } = await call(['why', 'vm/web'], admin);
      expect(explained).toMatch(
        /^VM default\/web is blocked by\n {2}NoLeader: No replica of the operator leads\./,
      );
    } finally {
      await env.operator.start();
    }
  });

  test('vmwright check --wait repeats the checks until they pass', async () => {
    await cloud.part.stop();
    const waiting = call(['check', '--wait=60s', ...SETTINGS], operator);
    await cloud.part.start();
    expect((await waiting).code).toBe(0);
  });
});

describe('vmwright status', () => {
  test('vmwright status shows controllers, leader, backends, counts of objects and the objects that need attention', async () => {
    const status = () => call(['status'], { ...admin, VMWRIGHT_OPERATOR_URL: operatorUrl });
    // Polled, because the tests above have restarted the operator and the cloud, which become available only after a
    // moment.
    await expect
      .poll(async () => (await status()).stdout)
      .toMatch(/^ {2}cloud +available\n {2}vCenter default +available\n.*^ {2}VM +1 +1/ms);
    const { stdout, code } = await status();
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Operator\n {2}vmwright \S+ \(unknown\)\n {2}leader \S+ \(last renewed the Lease \d+s ago\)$/m,
    );
    expect(stdout).toMatch(/^Controllers\n {2}vm +on\n {2}vmgroup +on\n {2}kubevirt +on$/m);
    expect(stdout).toMatch(/^ {2}cloud +available$/m);
    expect(stdout).toMatch(/^ {2}vCenter default +available$/m);
    expect(stdout).toMatch(/^ {2}VM +1 +1/m);
    expect(stdout).toMatch(
      /^ {2}VmGroup default\/lost: Stalled for \d+\w\n {4}NotFound: .*no-such-template/m,
    );
    expect(stdout).not.toContain('\u001b['); // no escape sequences for colours, because stdout is not a terminal
  });

  test('vmwright status prints one namespace as JSON, and a remedy if no operator pod is found', async () => {
    const { stdout } = await call(['status', '-n', 'default', '-o', 'json'], admin);
    expect(JSON.parse(stdout)).toMatchObject({
      operator: { problem: expect.stringContaining('set --operator-namespace, or --operator-url') },
      leader: { isExpired: false, holder: expect.any(String) },
      kinds: expect.arrayContaining([expect.objectContaining({ kind: 'VirtualMachine', total: 0 })]),
    });
    const both = await call(['status', '-n', 'default', '-A'], admin);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('-n and -A are both given')]);
  });
});

test('vmwright describe shows the object, its children and its external machines as a tree', async () => {
  const group = await call(['describe', 'vg/web'], admin);
  expect(group.stdout).toMatch(
    /^NAME .*\nVmGroup\/web +True +Running +\d+\w +successfully reconciled VmGroup\n└─ 3 machines: \S+, \S+, \S+ +True +poweredOn +-$/m,
  );
  const all = await call(['describe', 'vg/web', '--all', '-o', 'json'], admin);
  expect(JSON.parse(all.stdout).tree.children).toHaveLength(3);
  const vm = await call(['describe', 'vm/web'], admin);
  expect(vm.stdout).toMatch(/^VM\/web +True.*\n└─ server [0-9a-f-]{36} +True +Running +-$/m);
  const machine = await call(['describe', 'virtualmachine/web', '-n', WORK], admin);
  expect(machine.stdout).toMatch(/^├─ VMDiskImage\/base in vmdi-farm \(referenced\) +True/m);
  expect(machine.stdout).toMatch(/^[├└]─ VirtualMachine\/web +True/m);
  expect(machine.stdout).toMatch(/^.{3,6}[├└]─ VirtualMachineInstance\/web +True/m);
  const gone = await call(['describe', 'vm/gone'], admin);
  expect([gone.code, gone.stderr]).toEqual([
    1,
    'vmwright: VM default/gone does not exist; `kubectl get vms.samplecontroller.k8s.io -A` lists all objects of this kind, -n selects the namespace\n',
  ]);
});

test('vmwright why explains what blocks an object and when the operator retries', async () => {
  const group = await call(['why', 'vmgroup/lost'], admin);
  expect(group.stdout).toMatch(/^VmGroup default\/lost is blocked by\n {2}NotFound: .*no-such-template/);
  expect(group.stdout).toMatch(
    /^The operator does not try again until the object changes|^The operator tries again/m,
  );
  const machine = await call(['why', 'otvm/waiting', '-n', WORK, '-o', 'json'], admin);
  expect(JSON.parse(machine.stdout)).toMatchObject({
    isBlocked: true,
    blockers: [{ message: expect.stringContaining('missing') }],
  });
  const ready = await call(['why', 'vm/web'], admin);
  expect(ready.stdout).toBe('VM default/web\n\nNothing blocks the object.\n');
});

test('vmwright orphans deletes only with --delete --yes, and only machines of objects that do not exist', async () => {
  await using client = new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: cloud.apiKey });
  const labels = {
    'vmwright.dev/cluster': CLUSTER_ID,
    'vmwright.dev/uid': '00000000-0000-4000-8000-000000000000',
    'vmwright.dev/namespace': 'default',
    'vmwright.dev/name': 'old',
  };
  const { id } = await client.create({ name: 'old', labels }, undefined);
  const foreign = await client.create({ name: 'foreign', labels: {} }, undefined);
  const names = async () => {
    const all: string[] = [];
    for await (const servers of client.list()) all.push(...servers.map(({ name }) => name));
    return all.toSorted();
  };
  expect(await names()).toEqual(['foreign', 'old', 'web']);
  const row = new RegExp(`^VM +${id} +server 'old' +default/old`, 'm');
  const until = async (pattern: RegExp) =>
    expect.poll(async () => (await call(['orphans', ...SETTINGS], operator)).stdout).toMatch(pattern);
  // The row ends with the age, so its column KEPT-BECAUSE is empty: the machine is older than the grace period.
  await until(new RegExp(`${row.source} +\\S+ +\\d+s$`, 'm'));
  const dry = await call(['orphans', '--delete', ...SETTINGS], operator);
  expect(dry.stdout).toMatch(row);
  expect(dry.stderr).toContain(
    'nothing was deleted; repeat with --delete --yes to delete the orphans with an empty KEPT-BECAUSE (1)',
  );
  expect(await names()).toEqual(['foreign', 'old', 'web']);
  const deleted = await call(['orphans', '--delete', '--yes', '-o', 'json', ...SETTINGS], operator);
  expect(JSON.parse(deleted.stdout)).toMatchObject([{ id, isDeleted: true }]);
  const uid = labels['vmwright.dev/uid'];
  expect(JSON.parse(deleted.stderr)).toMatchObject({
    audit: 'delete',
    kind: 'VM',
    object: 'default/old',
    uid,
    machine: id,
    machineName: 'old',
    reason: 'vmwright orphans --delete',
  });
  await expect.poll(names).toEqual(['foreign', 'web']);
  await client.delete(foreign.id);
  expect((await call(['orphans', '--yes', ...SETTINGS], operator)).stderr).toContain(
    '--yes confirms --delete, but --delete is not given',
  );
});

test('kubectl get vmwright lists the objects of all kinds', async () => {
  await env.controlPlane.cluster.apply(await readFile(join(ROOT, 'config/samples/gpuinfo.yaml'), 'utf8'));
  onTestFinished(async () => void (await env.kubectl('delete', 'gpu', 'gpuinfo-sample')));
  const listed = await env.kubectl('get', 'vmwright', '-A', '-o', 'name');
  for (const name of [
    'vm.samplecontroller.k8s.io/web',
    'vmgroup.vm.codeconnect.vmworld.com/lost',
    'virtualmachine.pelotech.ot/waiting',
    'vmdiskimage.crd.pelotech.ot/base',
    'gpuinfo.topology.corinternal.com/gpuinfo-sample',
  ])
    expect(listed.split('\n')).toContain(name);
});

test('vmwright bundle writes an archive with objects, events, versions and metrics, and without secrets', async () => {
  const folder = await temporaryFolder('bundle');
  const file = join(folder, 'bundle.tar.gz');
  const secrets = { VC_PASS: vcsim.password, CLOUD_API_KEY: cloud.apiKey, DATABASE_URL: database };
  const result = await call(['bundle', '-f', file, `--operator-url=${operatorUrl}`], {
    ...admin,
    ...secrets,
  });
  expect(result).toMatchObject({ code: 0, stderr: '' });
  const unpacked = await run('tar', ['-xzf', file, '-C', folder]);
  expect(unpacked).toMatchObject({ code: 0, stderr: '' });
  const read = (path: string) => readFile(join(folder, 'vmwright-bundle', path), 'utf8');
  const listed = await run('tar', ['-tzf', file]);
  const files = listed.stdout.trim().split('\n');
  expect(files).toEqual(
    expect.arrayContaining(
      ['objects/virtualmachines.pelotech.ot.json', 'objects/events.events.k8s.io.json', 'crds.json'].map(
        (path) => `vmwright-bundle/${path}`,
      ),
    ),
  );
  expect(files.filter((path) => path.includes('secret'))).toEqual([]);
  const machines = await read('objects/virtualmachines.pelotech.ot.json');
  expect(JSON.parse(machines)).toHaveLength(2);
  expect(machines).toContain('"plain_text_passwd": "[redacted]"');
  expect(await read('operator/metrics.txt')).toContain('vmwright_build_info');
  expect(JSON.parse(await read('crds.json'))).toMatchObject([
    { name: 'vms.samplecontroller.k8s.io', versions: [{ version: 'v1alpha1', storage: true }] },
    ...[{}, {}, {}, {}],
  ]);
  for (const path of files) {
    const text = await readFile(join(folder, path), 'utf8');
    expect(credentialsIn(text), path).toEqual([]);
  }
});

test('vmwright mirror verify compares the table with the cluster, and exits with code 2 if the database is unreachable', async () => {
  const agreeing = await call(['mirror', 'verify'], { ...admin, DATABASE_URL: database });
  expect(agreeing).toMatchObject({ code: 0, stdout: 'The table agrees with the cluster.\n' });
  const broken = await call(['mirror', 'verify'], {
    ...admin,
    DATABASE_URL: 'postgres://x@127.0.0.1:1/none',
  });
  expect(broken.code).toBe(2);
});

test('vmwright prints versions and shell completion, and reports wrong arguments and an unreachable API server', async () => {
  expect((await call(['version'], admin)).stdout).toMatch(
    /^vmwright \S+ \(unknown\), Node v24\S+\nKubernetes v1\./,
  );
  const completed = await run('bash', [
    '-c',
    'eval "$("$0" "$1" completion bash)"; COMP_WORDS=(vmwright st); COMP_CWORD=1; _vmwright; echo "$COMPREPLY"',
    process.execPath,
    join(ROOT, 'packages/operator/src/main.ts'),
  ]);
  expect(completed.stdout).toBe('status\n');
  expect(await call(['statsu'], {})).toMatchObject({
    code: 2,
    stderr:
      "vmwright: unknown command 'statsu' (Did you mean status?); --help lists the commands and flags\n",
  });
  const config = join(await temporaryFolder('kubeconfig'), 'config');
  const [clusters, users] = [
    [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
    [{ name: 'u', user: {} }],
  ];
  const contexts = [{ name: 'x', context: { cluster: 'c', user: 'u' } }];
  await writeFile(config, JSON.stringify({ clusters, users, contexts, 'current-context': 'x' }));
  const unreachable = await call(['describe', 'vm/web', `--kubeconfig=${config}`], {});
  expect([unreachable.code, unreachable.stderr]).toEqual([
    1,
    expect.stringMatching(/ECONNREFUSED.*; check that the API server runs, and check the kubeconfig/),
  ]);
  const context = await call(['status', '--context=none'], admin);
  expect(context).toMatchObject({ code: 1, stderr: expect.stringContaining('has no context "none"') });
  expect((await call(['run', '--vm-refesh=1s'], {})).stderr).toContain('did you mean "--vm-refresh"?');
});

test('the commands of docs/cli.md print the documented output, both as vmwright and as the plugin kubectl vmwright', async () => {
  const folder = await temporaryFolder('cli-docs');
  const variables = { ...operator, ...admin, PATH: await pluginPath() };
  const kubectl = await new Assets().path('kubectl');
  const commands = consoleCommands(page('cli.md'));
  for (const { line, output } of commands) {
    const command = line
      .replaceAll('http://127.0.0.1:8080', operatorUrl)
      .replace(/^kubectl vmwright/, `"${kubectl}" vmwright`)
      .replace(/^vmwright/, `"${process.execPath}" ${join(ROOT, 'packages/operator/src/main.ts')}`);
    const result = await run('bash', ['-c', `cd ${folder} && set -o pipefail && ${command}`], variables);
    printed += result.stdout + result.stderr;
    expect(result, line).toMatchObject({ code: 0 });
    const shapes = (lines: readonly string[]) =>
      lines.map((each) => shapeOf(each).replace(/ \d+[smhd] /, ' <age> '));
    if (output.length > 0) expect(shapes(result.stdout.trimEnd().split('\n')), line).toEqual(shapes(output));
  }
  expect(commands.length).toBeGreaterThan(8);
}, 300_000);

test('no command has printed a secret', () => {
  expect(printed.length).toBeGreaterThan(5_000);
  expect(credentialsIn(printed)).toEqual([]);
});
