import { once } from 'node:events';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Cloud,
  field,
  type KubeObject,
  Part,
  startCloud,
  startVcsim,
  temporaryFolder,
} from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Installed, installed, SYSTEM } from './installed.ts';
import { install, VMS, type WithCloud } from './with-cloud.ts';
import { GROUPS, TEMPLATE } from './with-vcenter.ts';

const stack = new AsyncDisposableStack();
let env: Installed;
let cloud: Cloud;
/** File with the operator's API key. */
let keyFile: string;

beforeAll(async () => {
  cloud = stack.use(await startCloud());
  const vcsim = stack.use(
    await startVcsim({ inventory: { standaloneHosts: 0, vms: 2 }, templates: [TEMPLATE] }),
  );
  keyFile = join(await temporaryFolder('key'), 'key');
  await writeFile(keyFile, `${cloud.apiKey}\n`);
  env = await installed(stack, {
    cloud,
    vcsim,
    // With one worker, a request that hangs blocks the reconciles of all other VMs.
    args: [
      ...['--vm-refresh=1s', '--vm-sweep=1s', '--cloud-timeout=1s', '--vm-concurrency=1'],
      '--vm-unknown-after=3s',
      '--log-level=debug',
    ],
    env: { CLOUD_API_KEY: '', CLOUD_API_KEY_FILE: keyFile },
  });
}, 180_000);
afterAll(() => stack.disposeAsync());

/** Timeout of a wait for a state. It is long, because the back-off between two retries grows to one minute. */
const LONG = { timeoutMs: 150_000 };
const TEST_MS = 300_000;

const create = (name: string) =>
  env.controlPlane.cluster.api.create(VMS, {
    apiVersion: 'samplecontroller.k8s.io/v1alpha1',
    kind: 'VM',
    metadata: { name },
    spec: { vmname: `vm${name}` },
  });
const until = (name: string, is: (vm: KubeObject) => boolean) =>
  env.controlPlane.cluster.waitFor(`${VMS}/${name}`, is, LONG);
const gone = (name: string) => env.controlPlane.cluster.waitForGone(`${VMS}/${name}`, LONG);
const remove = (...names: readonly string[]) =>
  env.kubectl('delete', '--wait=false', 'vms.samplecontroller.k8s.io', ...names);
const status = (vm: KubeObject, name: string) => field(vm, 'status', name);
const ready = (vm: KubeObject): unknown =>
  [status(vm, 'conditions') ?? []].flat().find((each) => field(each, 'type') === 'Ready');
const isRunning = (vm: KubeObject) => status(vm, 'opStatus') === 'Running';
const isFor = (reason: string) => (vm: KubeObject) => field(ready(vm), 'reason') === reason;
const isWaitingFor = (reason: string) => (vm: KubeObject) =>
  status(vm, 'opStatus') === 'Deleting' && isFor(reason)(vm);
const vmIdOf = async (name: string) => status(await until(name, isRunning), 'vmId');

/** Creates VMs and waits until they run. */
async function running(...names: readonly string[]): Promise<void> {
  await Promise.all(names.map(create));
  await Promise.all(names.map((name) => until(name, isRunning)));
}

/** Reads the names of the machines directly from the cloud, without the operator. */
async function machines(): Promise<readonly unknown[]> {
  const page: unknown = await (await cloud.fetch('/servers?limit=1000')).json();
  return [field(page, 'items')].flat().map((server) => field(server, 'name'));
}

test(
  'a rejected API key is reported without quoting it, and VMs are managed again once it is replaced',
  async () => {
    await running('locked', 'deleted');
    const vmId = await vmIdOf('locked');
    const newKey = 'another-0123456789abcdef';
    const message =
      "The cloud rejects the operator's API key. An administrator of the operator has to replace it";
    {
      await using _ = await withOtherKey(newKey);
      const unknown = await until('locked', isFor('CloudUnauthorized'));
      expect(ready(unknown)).toMatchObject({ status: 'Unknown', message });
      expect(unknown.status).toMatchObject({ opStatus: 'Unknown', msg: message, vmId });
      await remove('deleted');
      expect(status(await until('deleted', isWaitingFor('CloudUnauthorized')), 'msg')).toBe(
        `Waiting to delete the machine. ${message}`,
      );
      await expect(create('refused')).rejects.toThrow(
        `The vmname "vmrefused" could not be checked. ${message}`,
      );

      await replaceKey(newKey);
      expect(await vmIdOf('locked')).toBe(vmId);
      await gone('deleted');
      await running('unlocked');
    }
    expect(await machines()).toEqual(expect.arrayContaining(['vmlocked', 'vmunlocked']));
    expect(await machines()).not.toContain('vmdeleted');

    const output = await outputs();
    for (const key of [newKey, cloud.apiKey])
      for (const [where, text] of Object.entries(output))
        expect(text.includes(key), `a key is in the ${where}`).toBe(false);
    expect(output.log).toContain('UnauthorizedError'); // otherwise, the search of the log would prove nothing
  },
  TEST_MS,
);

test(
  'an unreadable or empty key file is reported, and VMs are managed again once the file is restored',
  async () => {
    await running('unread', 'unread-deleted');
    const vmId = await vmIdOf('unread');
    const message =
      'The operator cannot read its API key. An administrator of the operator has to restore it';
    const away = join(dirname(keyFile), 'away');
    await rename(keyFile, away);
    try {
      const unknown = await until('unread', isFor('CloudUnauthorized'));
      expect(ready(unknown)).toMatchObject({ status: 'Unknown', message });
      expect(unknown.status).toMatchObject({ opStatus: 'Unknown', msg: message, vmId });
      expect(status(unknown, 'cpuUtilization')).toBeUndefined();
      await remove('unread-deleted');
      expect(status(await until('unread-deleted', isWaitingFor('CloudUnauthorized')), 'msg')).toBe(
        `Waiting to delete the machine. ${message}`,
      );
      await expect(create('refused')).rejects.toThrow(
        `The vmname "vmrefused" could not be checked. ${message}`,
      );
    } finally {
      await rename(away, keyFile);
    }
    await gone('unread-deleted');
    expect(await vmIdOf('unread')).toBe(vmId);

    for (const content of [`${cloud.apiKey}\nanother`, '']) {
      await replaceKey(content);
      expect(status(await until('unread', isFor('CloudUnauthorized')), 'msg')).toBe(message);
      await replaceKey(cloud.apiKey);
      expect(await vmIdOf('unread')).toBe(vmId);
    }
    const output = await outputs();
    expect(output.log).toContain('CLOUD_API_KEY_FILE names ');
    expect(Object.values(output).join('\n')).not.toContain(cloud.apiKey);
  },
  TEST_MS,
);

/** Restarts the cloud with the same port and data, but with another key. Disposal of the result restores the key. */
async function withOtherKey(key: string): Promise<AsyncDisposable> {
  const main = fileURLToPath(new URL('../../cloud/src/main.ts', import.meta.url));
  const { dir } = cloud.part;
  await cloud.part.kill();
  const part = await Part.start({
    name: 'cloud',
    command: process.execPath,
    args: [
      ...['--disable-warning=ExperimentalWarning', main, 'serve', '--listen', new URL(cloud.url).host],
      ...['--data', join(dir, 'cloud.sqlite'), '--config', join(dir, 'config.json')],
    ],
    env: { CLOUD_API_KEYS: key },
    dir,
    ready: async () => (await fetch(`${cloud.url}/readyz`, { headers: { connection: 'close' } })).ok,
  });
  return {
    [Symbol.asyncDispose]: async () => {
      await part[Symbol.asyncDispose]();
      await replaceKey(cloud.apiKey);
      await cloud.part.start();
    },
  };
}

/** Replaces the key file atomically, as the volume of a Secret does. */
async function replaceKey(key: string): Promise<void> {
  const next = join(dirname(keyFile), 'next');
  await writeFile(next, `${key}\n`);
  await rename(next, keyFile);
}

async function outputs() {
  const all = (resource: string) => env.kubectl('get', '--all-namespaces', '-o', 'json', resource);
  return {
    objects: await all('vms.samplecontroller.k8s.io'),
    events: await all('events.events.k8s.io'),
    leases: await all('leases.coordination.k8s.io'),
    metrics: await env.metrics(env.operator),
    log: await readFile(env.operator.log, 'utf8'),
  };
}

describe('after a 429 with Retry-After', () => {
  let calm: WithCloud;
  beforeAll(async () => {
    // In these tests, this process acts as the cloud, and may answer slowly on a busy machine. With a timeout shorter
    // than the default, the operator would repeat requests. With one worker, the worker, the refresher and garbage
    // collection each have at most one request in flight.
    calm = await install({ args: ['--vm-refresh=1s', '--vm-sweep=1s', '--vm-concurrency=1'] });
  }, 120_000);
  afterAll(() => calm?.[Symbol.asyncDispose]());

  const untilCalm = (name: string, is: (vm: KubeObject) => boolean) =>
    calm.controlPlane.cluster.waitFor(`${VMS}/${name}`, is, LONG);

  test.each([
    { seconds: 2, times: 5 }, // a short Retry-After: the call waits and then retries
    { seconds: 7, times: 2 }, // a long Retry-After: the call fails immediately, and the reconcile is retried later
  ])(
    'the operator sends no request to the cloud for $seconds seconds, and then continues',
    async ({ seconds, times }) => {
      const deleted = [1, 2, 3, 4].map((each) => `busy-${seconds}-${each}`);
      const staying = `calm-${seconds}`;
      const names = [...deleted, staying];
      await Promise.all(names.map((name) => calm.vm(name, `vm${name}`)));
      await Promise.all(names.map((name) => untilCalm(name, isRunning)));
      const vmIdOfStaying = async () => status(await untilCalm(staying, isRunning), 'vmId');
      const vmId = await vmIdOfStaying();
      {
        await using busy = await busyCloud(calm.cloud, seconds);
        await calm.kubectl('delete', '--wait=false', 'vms.samplecontroller.k8s.io', ...deleted);
        await busy.waited(times);
        const gaps = (requests: readonly Received[], senders: number) =>
          requests.slice(senders).map(({ at }, index) => at - (requests[index]?.at ?? 0));
        // The worker, the refresher and garbage collection can each have a request in flight when the first 429
        // arrives. So at most three requests are sent per waiting time: request n + 3 comes at least `seconds` after
        // request n.
        expect(busy.received.length).toBeGreaterThan(2);
        expect(
          gaps(busy.received, 3).filter((ms) => ms < seconds * 1_000 - TIMER_MS),
          story(busy.received),
        ).toEqual([]);
        const byWorker = busy.received.filter(({ path }) => !/label=vmwright.dev%2Fcluster/.test(path));
        expect(
          gaps(byWorker, 1).filter((ms) => ms < seconds * 1_000 - TIMER_MS),
          story(byWorker),
        ).toEqual([]);
        const waiting = await untilCalm(deleted[0] ?? '', isWaitingFor('CloudBusy'));
        expect(status(waiting, 'msg')).toBe(
          'Waiting to delete the machine. The cloud asked to back off (Retry-After); retrying automatically',
        );
      }
      const { cluster } = calm.controlPlane;
      await Promise.all(deleted.map((name) => cluster.waitForGone(`${VMS}/${name}`, LONG)));
      expect(await vmIdOfStaying()).toBe(vmId);
      expect((await calm.servers()).filter(({ name }) => name.startsWith('vmbusy'))).toEqual([]);
    },
    TEST_MS,
  );
});

/** Tolerance for timers that fire early. */
const TIMER_MS = 20;

interface Received {
  readonly at: number;
  readonly method: string;
  readonly path: string;
}

const story = (received: readonly Received[]) =>
  received.map(({ at, method, path }) => `${Math.round(at)} ${method} ${path}`).join('\n');

interface BusyCloud extends AsyncDisposable {
  readonly received: readonly Received[];
  /** Resolves when a request arrives at least `times` Retry-After periods after the first request. */
  waited(times: number): Promise<void>;
}

/**
 * Replaces the cloud by a server that answers every request with 429, until the result is disposed of. The cloud's own
 * fault injection sends only a Retry-After of 0.
 */
async function busyCloud(cloud: Cloud, seconds: number): Promise<BusyCloud> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const { method = '', url: path = '' } = request;
    received.push({ at: performance.now(), method, path });
    response.writeHead(429, { 'retry-after': String(seconds), 'content-type': 'text/plain' });
    response.end('too many requests');
  });
  const { hostname, port } = new URL(cloud.url);
  await cloud.part.kill();
  server.listen(Number(port), hostname);
  await once(server, 'listening');
  const span = () => (received.at(-1)?.at ?? 0) - (received[0]?.at ?? 0);
  return {
    received,
    waited: async (times) => {
      while (received.length === 0 || span() < times * seconds * 1_000) await once(server, 'request');
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      await cloud.part.start();
    },
  };
}

test(
  'while the cloud hangs, other kinds are reconciled, and deleted VMs report that they wait for the cloud',
  async () => {
    const names = ['hangs', 'leaves-1', 'leaves-2', 'leaves-3'];
    await running(...names);
    const vmId = await vmIdOf('hangs');
    const leader = await leaseOf();
    cloud.part.pause();
    try {
      const unknown = await until('hangs', isFor('CloudUnreachable'));
      const message = 'The cloud does not answer; retrying automatically';
      expect(ready(unknown)).toMatchObject({ status: 'Unknown', message });
      expect(unknown.status).toMatchObject({ opStatus: 'Unknown', vmId });
      await remove('leaves-1', 'leaves-2', 'leaves-3');

      const { cluster } = env.controlPlane;
      await cluster.api.create(GROUPS, {
        apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
        kind: 'VmGroup',
        metadata: { name: 'control' },
        spec: { replicas: 2, cpu: 1, memory: 1, template: TEMPLATE },
      });
      await cluster.waitFor(`${GROUPS}/control`, ({ status: its }) => field(its, 'readyReplicas') === 2);
      await cluster.api.delete(`${GROUPS}/control`);
      await cluster.waitForGone(`${GROUPS}/control`);

      for (const name of ['leaves-1', 'leaves-2', 'leaves-3'])
        expect(status(await until(name, isWaitingFor('CloudUnreachable')), 'msg')).toBe(
          `Waiting to delete the machine. ${message}`,
        );
      expect(await leaseOf()).toEqual(leader);
    } finally {
      cloud.part.resume();
    }
    await Promise.all(['leaves-1', 'leaves-2', 'leaves-3'].map(gone));
    expect(await vmIdOf('hangs')).toBe(vmId);
    const left = await machines();
    expect(left.filter((name) => /^vm(hangs|leaves)/.test(String(name)))).toEqual(['vmhangs']);
  },
  TEST_MS,
);

/** Returns the leader and the number of leader changes. */
async function leaseOf() {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases/vmwright`;
  const { spec } = await env.controlPlane.cluster.api.get(path);
  return { holder: field(spec, 'holderIdentity'), changes: field(spec, 'leaseTransitions') };
}
