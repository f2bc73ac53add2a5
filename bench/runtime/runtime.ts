import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, kubeconfigAccess, nodeWorld, WorkQueue } from '@vmwright/runtime';
import { type ControlPlane, startControlPlane, temporaryFolder } from '@vmwright/testbed';
import type { Row } from '../bar.ts';
import { Program } from './program.ts';
import { ConfigMap, crd, Sample } from './sample.ts';

const OBJECTS = Number(process.env.OBJECTS ?? 3_000);
const CACHED = Number(process.env.CACHED ?? 50_000);
const NAMESPACE = 'default';
const compileCache = temporaryFolder('compile-cache');

/** Our runtime against Go's controller-runtime, both on the same API server in the same run. */
export async function runtime(): Promise<Row[]> {
  const theirs = await buildTheirs();
  const rows: Row[] = [queueRate()];
  {
    await using controlPlane = await startControlPlane();
    rows.push(...(await throughput(controlPlane, theirs)));
  }
  await using controlPlane = await startControlPlane();
  rows.push(...(await memory(controlPlane, theirs)));
  return rows;
}

async function buildTheirs(): Promise<string> {
  const folder = fileURLToPath(new URL('../controller-runtime', import.meta.url));
  const output = join(await temporaryFolder('bench'), 'controller-runtime');
  execFileSync('go', ['build', '-trimpath', '-buildvcs=false', '-mod=readonly', '-o', output, '.'], {
    cwd: folder,
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: 'inherit',
  });
  return output;
}

function ours(...args: readonly string[]): [string, readonly string[]] {
  return [
    process.execPath,
    ['--max-semi-space-size=4', fileURLToPath(new URL('ours.ts', import.meta.url)), ...args],
  ];
}

function queueRate(): Row {
  const queue = new WorkQueue({ clock: nodeWorld });
  const keys = Array.from({ length: 10_000 }, (_, i) => `namespace-${i % 100}/object-${i}`);
  const [rounds, started] = [200, performance.now()];
  for (let round = 0; round < rounds; round++) {
    for (const key of keys) queue.add(key);
    for (let item = queue.tryTake(); item !== undefined; item = queue.tryTake()) queue.done(item.key);
  }
  const perSecond = (rounds * keys.length) / ((performance.now() - started) / 1000);
  return { name: 'queue, add+get+done (M/s)', ours: perSecond / 1e6, bar: { atLeast: 1 } };
}

async function throughput(controlPlane: ControlPlane, theirs: string): Promise<Row[]> {
  const { cluster } = controlPlane;
  await cluster.apply(JSON.stringify(crd));
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/samples.bench.vmwright.dev']);
  await using client = await connect(cluster.kubeconfig);
  await each(OBJECTS, (i) =>
    client.create(Sample, { metadata: { namespace: NAMESPACE, name: `s-${i}` }, spec: { text: 'x' } }),
  );
  await giveStatus(client, cluster.kubeconfig, ours('--workers=64', '--phase=warm'), 'warm'); // compiles it
  const rows: Row[] = [];
  for (const workers of [1, 16, 64]) {
    const args = (phase: string) => [`--workers=${workers}`, '--job=status', `--phase=${phase}`];
    const them = await giveStatus(
      client,
      cluster.kubeconfig,
      [theirs, args(`go-${workers}`)],
      `go-${workers}`,
    );
    const us = await giveStatus(client, cluster.kubeconfig, ours(...args(`ts-${workers}`)), `ts-${workers}`);
    const what = `${workers} workers, ${OBJECTS} objects`;
    rows.push(
      { name: `reconciles a second, ${what}`, ours: us.rate, theirs: them.rate, bar: { atLeast: 1.5 } },
      { name: `CPU seconds, ${what}`, ours: us.cpu, theirs: them.cpu, bar: { atMost: 0.6 } },
    );
  }
  return rows;
}

/** From the first object that has the new status to the last. */
async function giveStatus(
  client: Client,
  kubeconfig: string,
  [command, args]: [string, readonly string[]],
  phase: string,
) {
  const { resourceVersion } = await client.list(Sample, { namespace: NAMESPACE, limit: 1 });
  await using program = new Program(command, args, kubeconfig, await compileCache);
  const done = new Set<string>();
  let first = 0;
  for await (const event of client.watch(Sample, { namespace: NAMESPACE, resourceVersion })) {
    if (event.type === 'BOOKMARK' || event.object.status?.phase !== phase) continue;
    first ||= performance.now();
    done.add(event.object.metadata.name);
    if (done.size === OBJECTS) break;
  }
  return { rate: OBJECTS / ((performance.now() - first) / 1000), ...program.usage() };
}

async function memory({ cluster }: ControlPlane, theirs: string): Promise<Row[]> {
  await using client = await connect(cluster.kubeconfig);
  const data = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`key-${i}`, 'v'.repeat(100)]));
  await each(CACHED, (i) =>
    client.create(ConfigMap, { metadata: { namespace: NAMESPACE, name: `c-${i}` }, data }),
  );
  const hold = async (command: string, args: readonly string[]) => {
    await using program = new Program(command, args, cluster.kubeconfig, await compileCache);
    await program.synced();
    await sleep(10_000); // until the garbage of the start is collected, on either side
    return program.usage().rss;
  };
  const us = await hold(...ours('--job=hold'));
  const [usual, typed] = [await hold(theirs, ['--job=hold']), await hold(theirs, ['--job=hold-typed'])];
  const what = `memory (MB) with ${CACHED} objects`;
  return [
    { name: `${what}, default cache`, ours: us, theirs: usual, bar: { atMost: 0.5 } },
    { name: `${what}, typed cache`, ours: us, theirs: typed, bar: { atMost: 1 } },
  ];
}

async function connect(kubeconfig: string): Promise<Client> {
  const access = await kubeconfigAccess({ world: nodeWorld, path: kubeconfig });
  return new Client({ world: nodeWorld, access, fieldManager: 'bench' });
}

/** Thirty-two at a time. */
async function each(count: number, act: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      while (next < count) {
        const i = next;
        next += 1;
        await act(i);
      }
    }),
  );
}
