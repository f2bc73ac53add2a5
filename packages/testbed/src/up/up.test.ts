import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Assets } from '../assets/assets.ts';
import { bundles } from '../assets/catalog.ts';
import { consoleCommands, shapeOf } from '../docs/console.ts';
import { freePortRange } from '../process/ports.ts';
import { run, tryRun } from '../process/run.ts';
import { temporaryFolder } from '../process/run-supervisor.ts';
import { until } from '../process/until.ts';

/** PATH without the `node_modules` folders that npm and make add; one of them contains the pinned Node.js. */
const SYSTEM_PATH = (process.env.PATH ?? '')
  .split(':')
  .filter((folder) => !folder.includes('node_modules'))
  .join(':');

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

interface Up {
  readonly process: ChildProcessWithoutNullStreams;
  readonly dir: string;
  readonly tmp: string;
  readonly port: number;
  /** Everything printed so far. */
  readonly output: () => string;
  readonly exit: Promise<readonly unknown[]>;
}

/** Starts `make up` with its own ports, `VMWRIGHT_UP_DIR` and `TMPDIR`, so that it can run next to other testbeds. */
async function start(env: Record<string, string | undefined> = {}): Promise<Up> {
  const work = await temporaryFolder('up-test');
  const [dir, tmp] = [join(work, 'up'), join(work, 'tmp')];
  mkdirSync(tmp);
  const port = await freePortRange(9);
  const child = spawn('make', ['up'], {
    cwd: ROOT,
    detached: true, // its own process group, as in a shell, so that Ctrl-C reaches make and its children
    env: { ...process.env, PORTS: String(port), VMWRIGHT_UP_DIR: dir, TMPDIR: tmp, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const exit = once(child, 'close'); // resolves when the process has exited and all its output was read
  onTestFinished(async () => {
    signal(child, 'SIGKILL');
    await until(async () => readdirSync(tmp).length === 0, {
      what: 'everything that `make up` started is gone',
    });
    rmSync(work, { recursive: true });
  });
  return { process: child, dir, tmp, port, output: () => output, exit };
}

/** Signals the process group of `make up` if it is still running. */
function signal(child: ChildProcessWithoutNullStreams, name: NodeJS.Signals): void {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
    process.kill(-child.pid, name);
}

async function ready(up: Up): Promise<void> {
  const file = join(up.dir, 'ready');
  // Waits for the last line as well, because it may still be in the pipe when the file appears.
  const done = async () =>
    (existsSync(file) && up.output().includes('Ctrl-C stops everything')) || up.process.exitCode !== null;
  await until(done, { what: '.vmwright/ready exists', timeoutMs: 80_000 });
  if (!existsSync(file)) throw new Error(`make up exited: ${up.output()}`);
}

/** Runs a command line in a shell that has sourced `.vmwright/env`. */
async function shell({ dir }: Up, line: string): Promise<string> {
  return (await run('sh', ['-c', `. ${join(dir, 'env')}; ${line}`])).stdout;
}

/**
 * Runs the commands of a documentation page in the repository's folder and compares their output with the page. A
 * command without documented output only has to succeed.
 */
async function runPage(up: Up, page: string): Promise<void> {
  for (const { line, output } of consoleCommands(readFileSync(join(ROOT, page), 'utf8'))) {
    const script = `cd ${ROOT}; . ${join(up.dir, 'env')}; ${line.replaceAll('.vmwright', up.dir)} 2>&1`;
    // Programs of the page that are not in the system's PATH, such as vmwright, must come from the sourced file `env`.
    const env = { PATH: SYSTEM_PATH, HOME: dirname(up.tmp) };
    // `kubectl delete` waits without a timeout. With this limit, the error names the command that hangs.
    const { stdout, code } = await tryRun('sh', ['-c', script], { env, timeoutMs: 120_000 });
    const printed = stdout.trimEnd() === '' ? [] : stdout.trimEnd().split('\n');
    if (output.length === 0) {
      expect(code, `${page}: ${line}\n${stdout}`).toBe(0);
      continue;
    }
    expect(printed.map(shapeOf), `${page}: ${line}\n${up.output()}`).toEqual(output.map(shapeOf));
  }
}

/** Expects that `make up` exits with code 1 and the message, prints no stack trace, and leaves no folder behind. */
async function expectFailure(up: Up, message: RegExp): Promise<void> {
  await up.exit;
  expect(up.output()).toMatch(message);
  expect(up.output()).toMatch(/^make.*: .* Error 1$/m); // exit code of the program; the exit code of make is 2
  expect(up.output()).not.toMatch(/^ {4}at /m);
  expect(existsSync(up.dir)).toBe(false);
}

test('make up starts every part, prints how to use each, and leaves nothing behind when stopped', async () => {
  const up = await start();
  await ready(up);
  for (const part of [
    'kubernetes +1.35.4',
    'kubevirt +1.6.0',
    'vcenter +vcsim',
    'postgresql +18',
    'toxiproxy +2.12.0',
    'cloud +simulated machines',
    'operator +from sources',
    'mirror +from sources',
  ]) {
    expect(up.output()).toMatch(new RegExp(`^${part}`, 'm'));
  }
  await shell(up, 'kubectl wait --for=condition=Ready virtualmachines.kubevirt.io/sample --timeout=60s');
  await shell(up, 'kubectl wait --for=condition=Ready cvm/sample --timeout=60s');
  expect(await shell(up, 'kubectl get nodes')).toMatch(/kubevirt-1 +Ready/);
  await shell(up, 'kubectl wait --for=condition=Ready gpu/gpuinfo-sample --timeout=60s');
  expect(await shell(up, 'kubectl get gpu')).toMatch(/^gpuinfo-sample +100 +true +gpu-1 +gpu-1 +8760$/m);
  expect(await shell(up, 'curl -sf $VCSIM_CONTROL/sessions')).toBeTruthy();
  expect(await shell(up, 'curl -skf https://$VC_HOST/sdk/vimServiceVersions.xml')).toContain('urn:vim25');
  expect(await shell(up, 'curl -sf $TOXIPROXY_URL/version')).toContain('2.12.0');
  expect(await shell(up, 'curl -sf -H "authorization: Bearer $CLOUD_API_KEY" $CLOUD_URL/servers')).toContain(
    '"name":"vmsample"',
  );
  expect(await shell(up, 'echo $VC_USER $VC_PASS')).toBe('administrator@vsphere.local vmwright\n');
  expect(await shell(up, 'echo $DATABASE_URL')).toMatch(
    /^postgres:\/\/vmwright:\w+@127\.0\.0\.1:\d+\/postgres\n$/,
  );
  const samples =
    'kubectl wait --for=condition=Ready otvm/demo-workspace-1 otvm/demo-workspace-2 --timeout=60s';
  expect(await shell(up, samples)).toContain('virtualmachine.pelotech.ot/demo-workspace-2 condition met');
  const reason =
    'kubectl get otvm demo-workspace-1 -o jsonpath=\'{.status.conditions[?(@.type=="Ready")].reason}\'';
  expect(await shell(up, reason)).toBe('IgnoredOnDeploy');
  for (const line of [
    'VMDiskImage vmdi-farm/demo-vmdi: Ready (',
    'VirtualMachine default/demo-workspace-1: Ready (',
    'VirtualMachineInstance default/sample: Started',
    'VM default/sample: Running (',
    'VmGroup myoperator-vms/vmgroup-sample: RUNNING (successfully reconciled VmGroup)',
  ])
    await until(async () => up.output().includes(line), { what: `make up prints "${line}"` });

  expect(await shell(up, 'curl -sf $VMWRIGHT_OPERATOR_URL/metrics')).toContain('vmwright_vm_orphans');
  expect(readdirSync(join(up.dir, 'logs'))).toContain('operator.log');
  expect(readFileSync(join(up.dir, 'logs', 'operator.log'), 'utf8')).toContain('{"');

  const runFolder = readdirSync(up.tmp).find((name) => name.startsWith('vmwright-run-')) ?? '';
  const recorded = JSON.parse(readFileSync(join(up.tmp, runFolder, 'processes.json'), 'utf8'));
  process.kill(recorded.parts.at(-1).pid, 'SIGKILL');
  await until(
    async () =>
      up.output().includes('ssvirt-vm-controller exited (SIGKILL), restarting in 1 s. Last lines of'),
    {
      what: 'the exit of the part is printed',
    },
  );
  await until(async () => up.output().includes('ssvirt-vm-controller is running again'), {
    what: 'the part is restarted',
    timeoutMs: 60_000,
  });

  signal(up.process, 'SIGINT');
  await up.exit;
  expect(up.output()).toContain('Everything is stopped');
  expect(existsSync(up.dir)).toBe(false);
  await until(async () => readdirSync(up.tmp).length === 0, { what: 'nothing is left behind' });
});

test('the commands of the documentation print the documented output in the environment of make up', async () => {
  const up = await start();
  await ready(up);
  // `env` provides our Node and programs, even if the system's PATH has another Node, or none.
  const programs = 'node --version; vmwright --help; vmwright-cloud --help';
  const { stdout } = await tryRun('sh', ['-c', `. ${join(up.dir, 'env')}; ${programs}`], {
    env: { PATH: SYSTEM_PATH },
  });
  expect(stdout).toMatch(/^v24\.[\s\S]*^Usage: vmwright [\s\S]*^vmwright-cloud serve /m);
  // README.md and docs/tour.md are left out, because `make newcomer` runs their commands.
  for (const name of [
    'mirror',
    'vm',
    'vmgroup',
    'vmdiskimage',
    'virtualmachine',
    'concepts',
    'troubleshooting',
  ])
    await runPage(up, `docs/${name}.md`);
  // `vm` is both the name of our kind and a short name of KubeVirt's VirtualMachine. kubectl prefers names to short
  // names. The pages use `cvm`, which has only one meaning.
  expect(await shell(up, 'kubectl get vm -o name')).toBe('vm.samplecontroller.k8s.io/sample\n');
}, 600_000);

test('`make restart` fails if no `make up` is running, and the error asks to start `make up`', async () => {
  const env = { ...process.env, VMWRIGHT_UP_DIR: await temporaryFolder('no-up') };
  const { code, stderr } = await tryRun('make', ['-C', ROOT, 'restart', 'PART=operator'], { env });
  expect(stderr).toMatch(/^no `make up` is running in .*; start it in another shell first$/m);
  expect(code).toBe(2);
});

test('without KubeVirt binaries and Go, make up imitates KubeVirt, and leaves nothing behind after SIGKILL', async () => {
  const work = await temporaryFolder('up-assets');
  onTestFinished(() => rmSync(work, { recursive: true }));
  for (const { name, programs } of bundles) {
    if (name === 'kubevirt') continue;
    for (const program of programs.keys()) symlinkSync(await new Assets().path(program), join(work, program));
  }
  // SHLVL=2 prevents make's bash from reading ~/.bashrc, which may add Go to the PATH. Bash reads this file if standard
  // input is a socket and SHLVL is less than 2.
  const env = { VMWRIGHT_ASSETS: work, XDG_CACHE_HOME: work, PATH: await pathWithoutGo(work), SHLVL: '2' };
  const up = await start(env);
  await ready(up);
  expect(up.output()).toMatch(/^kubevirt +imitated .*virt-controller is not available/m);
  await shell(
    up,
    'kubectl wait --for=jsonpath={.status.printableStatus}=Running virtualmachines.kubevirt.io/sample --timeout=60s',
  );
  expect(up.output()).toContain('KubeVirt is imitated by kwok: virt-controller 1.6.0 is not available');
  signal(up.process, 'SIGKILL');
  await until(async () => readdirSync(up.tmp).length === 0 && !existsSync(up.dir), {
    what: 'nothing is left behind',
  });
});

describe('make up exits with code 1, prints the remedy, and leaves nothing behind', () => {
  test('make up fails when a port is in use', async () => {
    const port = await freePortRange(9);
    const holder = createServer().listen(port + 3, '127.0.0.1');
    await once(holder, 'listening');
    const up = await start({ PORTS: String(port) });
    await expectFailure(
      up,
      new RegExp(`port ${port + 3} for postgres is in use; stop the process that uses it, or set PORTS`),
    );
    holder.close();
  });

  test('make up fails when PORTS is not a port number', async () => {
    await expectFailure(
      await start({ PORTS: 'high' }),
      /PORTS=high must be a port number from 1024 to 65527/,
    );
  });

  test('make up fails when the cache folder is not writable', async () => {
    const work = await temporaryFolder('up-cache');
    onTestFinished(() => rmSync(work, { recursive: true }));
    writeFileSync(join(work, 'file'), '');
    const up = await start({
      XDG_CACHE_HOME: join(work, 'file'),
      VMWRIGHT_ASSETS: '',
      KUBEBUILDER_ASSETS: '',
    });
    await expectFailure(
      up,
      /the cache folder .*file\/vmwright\/assets cannot be used: .*\/file is a file \(EEXIST\); remove it, or set/,
    );
  });

  const UNUSABLE = process.platform === 'linux' ? '/proc/nope' : '/dev/null/nope';

  test('make up fails when XDG_CACHE_HOME is a folder that cannot be created', async () => {
    const up = await start({ XDG_CACHE_HOME: UNUSABLE, VMWRIGHT_ASSETS: '', KUBEBUILDER_ASSETS: '' });
    await expectFailure(
      up,
      /the cache folder .*\/nope\/vmwright\/assets cannot be used: .*, or set XDG_CACHE_HOME to another folder/,
    );
  });

  test('make up fails when VMWRIGHT_UP_DIR is a folder that cannot be created', async () => {
    const up = await start({ VMWRIGHT_UP_DIR: UNUSABLE });
    await expectFailure(
      up,
      /the folder of `make up` .*\/nope cannot be used: .*, or set VMWRIGHT_UP_DIR to another folder/,
    );
  });

  test('make up fails when the disk is full', async () => {
    const up = await start({ VMWRIGHT_MIN_FREE_MB: String(Number.MAX_SAFE_INTEGER) });
    await expectFailure(
      up,
      /has \d+ MB free, but the testbed needs \d+ MB; free some space, or set TMPDIR to a folder on another disk/,
    );
  });

  test('make up fails when another make up uses the same VMWRIGHT_UP_DIR', async () => {
    const work = await temporaryFolder('up-busy');
    onTestFinished(() => rmSync(work, { recursive: true }));
    writeFileSync(join(work, 'ready'), `${process.pid}\n`);
    const up = await start({ VMWRIGHT_UP_DIR: work });
    await expectFailure(
      up,
      /is in use by another `make up` \(process \d+\); stop it, or set VMWRIGHT_UP_DIR/,
    );
    expect(readdirSync(work)).toEqual(['ready']);
  });
});

test('Ctrl-C during startup leaves nothing behind', async () => {
  const up = await start();
  await until(async () => up.output().includes('kubernetes is ready'), {
    what: 'the control plane is started',
  });
  signal(up.process, 'SIGINT');
  await up.exit;
  await until(async () => readdirSync(up.tmp).length === 0, { what: 'nothing is left behind' });
  expect(existsSync(up.dir)).toBe(false);
});

/** Returns a PATH with the commands that the testbed runs, but without Go. */
async function pathWithoutGo(work: string): Promise<string> {
  const bin = join(work, 'bin');
  mkdirSync(bin);
  for (const command of ['make', 'sh', 'id', 'tar', 'curl']) {
    const found = (await tryRun('sh', ['-c', `command -v ${command}`])).stdout.trim();
    symlinkSync(found, join(bin, basename(found)));
  }
  return bin;
}
