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
import { temporaryFolder } from '../process/keeper.ts';
import { freePort } from '../process/ports.ts';
import { run, tryRun } from '../process/run.ts';
import { until } from '../process/until.ts';

/** Without what npm and make put before it, such as our Node. */
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
  /** All that it has said so far. */
  readonly output: () => string;
  readonly exit: Promise<readonly unknown[]>;
}

/** `make up`, beside any other, with a folder for its files and one for its runs. */
async function start(env: Record<string, string | undefined> = {}): Promise<Up> {
  const work = await temporaryFolder('up-test');
  const [dir, tmp] = [join(work, 'up'), join(work, 'tmp')];
  mkdirSync(tmp);
  const port = await firstOf(8);
  const child = spawn('make', ['up'], {
    cwd: ROOT,
    detached: true, // a group of its own, as a shell gives it: Ctrl-C goes to make and to what it runs
    env: { ...process.env, PORTS: String(port), VMWRIGHT_UP_DIR: dir, TMPDIR: tmp, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const exit = once(child, 'close'); // ended, and all that it said has come
  onTestFinished(async () => {
    signal(child, 'SIGKILL');
    await until(async () => readdirSync(tmp).length === 0, { what: 'all that `make up` started is gone' });
    rmSync(work, { recursive: true });
  });
  return { process: child, dir, tmp, port, output: () => output, exit };
}

/** To the whole group, if there is still one. */
function signal(child: ChildProcessWithoutNullStreams, name: NodeJS.Signals): void {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
    process.kill(-child.pid, name);
}

/** The first of so many free ports in a row. */
async function firstOf(count: number): Promise<number> {
  let ports: number[] = [];
  while (ports.length < count) {
    const port = await freePort();
    ports = ports.at(-1) === port - 1 ? [...ports, port] : [port];
  }
  return ports[0] ?? 0;
}

async function ready(up: Up): Promise<void> {
  const file = join(up.dir, 'ready');
  // The file first, then what it has said: its last line may still be on its way through the pipe.
  const done = async () =>
    (existsSync(file) && up.output().includes('Ctrl-C stops everything')) || up.process.exitCode !== null;
  await until(done, { what: '.vmwright/ready', timeoutMs: 80_000 });
  if (!existsSync(file)) throw new Error(`it ended: ${up.output()}`);
}

/** Runs a line in a shell that has read `.vmwright/env`. */
async function shell({ dir }: Up, line: string): Promise<string> {
  return (await run('sh', ['-c', `. ${join(dir, 'env')}; ${line}`])).stdout;
}

/** Runs the commands of a page as a reader does, in the repository's folder, and compares what they print with the page. */
async function follow(up: Up, page: string): Promise<void> {
  for (const { line, output } of consoleCommands(readFileSync(join(ROOT, page), 'utf8'))) {
    const script = `cd ${ROOT}; . ${join(up.dir, 'env')}; ${line.replaceAll('.vmwright', up.dir)} 2>&1`;
    // The PATH of a login shell: what the page needs must come from `env`.
    const env = { PATH: SYSTEM_PATH, HOME: dirname(up.tmp) };
    // `kubectl delete` waits for ever: a hanging command must fail under its own name.
    const { stdout } = await tryRun('sh', ['-c', script], { env, timeoutMs: 120_000 });
    const said = stdout.trimEnd() === '' ? [] : stdout.trimEnd().split('\n');
    expect(said.map(shapeOf), `${page}: ${line}\n${up.output()}`).toEqual(output.map(shapeOf));
  }
}

/** Ends with code 1 and one sentence, and leaves nothing. */
async function expectRefusal(up: Up, sentence: RegExp): Promise<void> {
  await up.exit;
  expect(up.output()).toMatch(sentence);
  expect(up.output()).toMatch(/^make.*: .* Error 1$/m); // what the program ended with; make itself ends with 2 then
  expect(up.output()).not.toMatch(/^ {4}at /m);
  expect(existsSync(up.dir)).toBe(false);
}

test('make up starts everything, says how to use it, and stops without a trace', async () => {
  const up = await start();
  await ready(up);
  for (const part of [
    'kubernetes +1.35.4',
    'kubevirt +1.6.0',
    'vcenter +vcsim',
    'postgresql +18',
    'toxiproxy +2.12.0',
    'cloud +simulated machines',
    'operator +this one',
  ]) {
    expect(up.output()).toMatch(new RegExp(`^${part}`, 'm'));
  }
  await shell(up, 'kubectl wait --for=condition=Ready virtualmachine/sample --timeout=60s');
  await shell(up, 'kubectl wait --for=condition=Ready cvm/sample --timeout=60s');
  const documented = consoleCommands(readFileSync(join(ROOT, 'README.md'), 'utf8')).map(({ line }) => line);
  const [vms, groups] = ['kubectl get cvm', 'kubectl get vg -A'];
  expect(documented).toEqual(['make up', '. .vmwright/env', vms, groups, 'make test']);
  expect(await shell(up, vms)).toMatch(
    /^NAME +VMNAME +STATUS +VMID +CPU +AGE\nsample +vmsample +Running +[0-9a-f-]{36} +\d+ +\w+$/m,
  );
  await until(async () => /^myoperator-vms +vmgroup-sample +RUNNING +3 +3 /m.test(await shell(up, groups)), {
    what: 'the sample of a group runs',
  });
  expect(await shell(up, 'kubectl get nodes')).toMatch(/kubevirt-1 +Ready/);
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
  for (const line of [
    'VirtualMachineInstance default/sample: Started',
    'VM default/sample: Running (',
    'VmGroup myoperator-vms/vmgroup-sample: RUNNING (successfully reconciled VmGroup)',
  ])
    await until(async () => up.output().includes(line), { what: `it prints "${line}"` });

  expect(await shell(up, 'curl -sf $OPERATOR_URL/metrics')).toContain('vmwright_vm_orphans');
  expect(readdirSync(join(up.dir, 'logs'))).toContain('operator.log');
  expect(readFileSync(join(up.dir, 'logs', 'operator.log'), 'utf8')).toContain('{"');

  const runFolder = readdirSync(up.tmp).find((name) => name.startsWith('vmwright-run-')) ?? '';
  const recorded = JSON.parse(readFileSync(join(up.tmp, runFolder, 'processes.json'), 'utf8'));
  process.kill(recorded.parts.at(-1).pid, 'SIGKILL');
  await until(
    async () => up.output().includes('operator ended (SIGKILL), restarting it in 1 s. The end of'),
    {
      what: 'the end of a part is printed',
    },
  );
  await until(async () => up.output().includes('operator is up again'), {
    what: 'the part is restarted',
    timeoutMs: 60_000,
  });

  signal(up.process, 'SIGINT');
  await up.exit;
  expect(up.output()).toContain('everything is stopped');
  expect(existsSync(up.dir)).toBe(false);
  await until(async () => readdirSync(up.tmp).length === 0, { what: 'nothing is left' });
});

test('beside make up, every command of the documentation prints what its page shows', async () => {
  const up = await start();
  await ready(up);
  // Our Node and programs, with another Node (or none) on the system's own PATH.
  const programs = 'node --version; vmwright --help; vmwright-cloud --help';
  const { stdout } = await tryRun('sh', ['-c', `. ${join(up.dir, 'env')}; ${programs}`], {
    env: { PATH: SYSTEM_PATH },
  });
  expect(stdout).toMatch(/^v24\.[\s\S]*^vmwright: [\s\S]*^vmwright-cloud serve /m);
  for (const page of ['docs/vm.md', 'docs/vmgroup.md', 'docs/tour.md']) await follow(up, page);
  // A name of a kind wins over a short name: this is why the pages say `cvm`.
  expect(await shell(up, 'kubectl get vm -o name')).toBe('vm.samplecontroller.k8s.io/sample\n');
}, 600_000);

test('make restart and make stop name what is wrong', async () => {
  const env = { ...process.env, VMWRIGHT_UP_DIR: await temporaryFolder('no-up') };
  const { code, stderr } = await tryRun('make', ['-C', ROOT, 'restart', 'PART=operator'], { env });
  expect(stderr).toMatch(/^no `make up` is ready in .*; run `make up` first, in another shell$/m);
  expect(code).toBe(2);
});

test('without Go or binaries for KubeVirt kwok imitates it and the table says so; a kill leaves nothing', async () => {
  const work = await temporaryFolder('up-assets');
  onTestFinished(() => rmSync(work, { recursive: true }));
  for (const { name, programs } of bundles) {
    if (name === 'kubevirt') continue;
    for (const program of programs.keys()) symlinkSync(await new Assets().path(program), join(work, program));
  }
  const up = await start({ VMWRIGHT_ASSETS: work, XDG_CACHE_HOME: work, PATH: await pathWithoutGo(work) });
  await ready(up);
  expect(up.output()).toMatch(/^kubevirt +imitated .*virt-controller is not available/m);
  await shell(
    up,
    'kubectl wait --for=jsonpath={.status.printableStatus}=Running virtualmachine/sample --timeout=60s',
  );
  expect(up.output()).toContain('KubeVirt is imitated by kwok, since virt-controller 1.6.0 is not to be had');
  signal(up.process, 'SIGKILL');
  await until(async () => readdirSync(up.tmp).length === 0 && !existsSync(up.dir), {
    what: 'nothing is left',
  });
});

describe('make up refuses with a sentence and code 1, and leaves nothing behind', () => {
  test('when a port is taken', async () => {
    const port = await firstOf(8);
    const stranger = createServer().listen(port + 3, '127.0.0.1');
    await once(stranger, 'listening');
    const up = await start({ PORTS: String(port) });
    await expectRefusal(
      up,
      new RegExp(`port ${port + 3}, wanted for postgres, is in use; end what holds it, or choose`),
    );
    stranger.close();
  });

  test('when PORTS is no port', async () => {
    await expectRefusal(
      await start({ PORTS: 'high' }),
      /PORTS=high must be a port number from 1024 to 65528/,
    );
  });

  test('when the cache cannot be written', async () => {
    const work = await temporaryFolder('up-cache');
    onTestFinished(() => rmSync(work, { recursive: true }));
    writeFileSync(join(work, 'file'), '');
    const up = await start({
      XDG_CACHE_HOME: join(work, 'file'),
      VMWRIGHT_ASSETS: '',
      KUBEBUILDER_ASSETS: '',
    });
    await expectRefusal(
      up,
      /the cache folder .*file\/vmwright\/assets cannot be used: .*\/file is a file \(EEXIST\); remove it, or set/,
    );
  });

  const UNUSABLE = process.platform === 'linux' ? '/proc/nope' : '/dev/null/nope';

  test('when XDG_CACHE_HOME is a folder that cannot be created', async () => {
    const up = await start({ XDG_CACHE_HOME: UNUSABLE, VMWRIGHT_ASSETS: '', KUBEBUILDER_ASSETS: '' });
    await expectRefusal(
      up,
      /the cache folder .*\/nope\/vmwright\/assets cannot be used: .*, or set XDG_CACHE_HOME to another folder/,
    );
  });

  test('when VMWRIGHT_UP_DIR is a folder that cannot be created', async () => {
    const up = await start({ VMWRIGHT_UP_DIR: UNUSABLE });
    await expectRefusal(
      up,
      /the folder of `make up` .*\/nope cannot be used: .*, or set VMWRIGHT_UP_DIR to another folder/,
    );
  });

  test('when the disk is full', async () => {
    const up = await start({ VMWRIGHT_MIN_FREE_MB: String(Number.MAX_SAFE_INTEGER) });
    await expectRefusal(
      up,
      /has \d+ MB left, and the testbed needs \d+ MB; free some, or set TMPDIR to a folder elsewhere/,
    );
  });

  test('when another make up has the folder', async () => {
    const work = await temporaryFolder('up-busy');
    onTestFinished(() => rmSync(work, { recursive: true }));
    writeFileSync(join(work, 'ready'), `${process.pid}\n`);
    const up = await start({ VMWRIGHT_UP_DIR: work });
    await expectRefusal(
      up,
      /belongs to a `make up` that is running \(process \d+\); end it, or set VMWRIGHT_UP_DIR/,
    );
    expect(readdirSync(work)).toEqual(['ready']);
  });
});

test('a Ctrl-C while it starts leaves nothing', async () => {
  const up = await start();
  await until(async () => up.output().includes('kubernetes is up'), { what: 'it is half started' });
  signal(up.process, 'SIGINT');
  await up.exit;
  await until(async () => readdirSync(up.tmp).length === 0, { what: 'nothing is left' });
  expect(existsSync(up.dir)).toBe(false);
});

/** A PATH with what the testbed calls, and no Go. */
async function pathWithoutGo(work: string): Promise<string> {
  const bin = join(work, 'bin');
  mkdirSync(bin);
  for (const command of ['make', 'sh', 'id', 'tar', 'curl']) {
    const found = (await tryRun('sh', ['-c', `command -v ${command}`])).stdout.trim();
    symlinkSync(found, join(bin, basename(found)));
  }
  return bin;
}
