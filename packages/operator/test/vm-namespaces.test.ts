import { readFile } from 'node:fs/promises';
import { CloudClient, type Server } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import {
  type Cluster,
  field,
  freePort,
  installOperator,
  type KubeObject,
  type Part,
  startCloud,
  startControlPlane,
  startOperator,
} from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { page } from './doc-commands.ts';
import { QUICK_ELECTION, SYSTEM } from './installed.ts';
import { install, type WithCloud } from './with-cloud.ts';

const QUICK = ['--vm-refresh=1s', '--vm-sweep=1s', '--cloud-timeout=2s'];

/** Matches the documented command that unblocks a namespace which is stuck in Terminating. */
const RESCUE = /kubectl create clusterrolebinding vmwright-rescue [^\n`]+/;

const vmsIn = (namespace: string) => `/apis/samplecontroller.k8s.io/v1alpha1/namespaces/${namespace}/vms`;
const bodyOf = (name: string, vmname: string) => ({
  apiVersion: 'samplecontroller.k8s.io/v1alpha1',
  kind: 'VM',
  metadata: { name },
  spec: { vmname },
});
const status = (vm: KubeObject, name: string) => field(vm, 'status', name);
const isRunning = (vm: KubeObject) => status(vm, 'opStatus') === 'Running';
const conditionOf = (vm: KubeObject, type: string): unknown =>
  [status(vm, 'conditions') ?? []].flat().find((each) => field(each, 'type') === type);
const isAccepted = (vm: KubeObject) => field(conditionOf(vm, 'NameAccepted'), 'status');

describe('with all namespaces', () => {
  let env: WithCloud;
  let cluster: Cluster;
  beforeAll(async () => {
    env = await install({ args: QUICK, cloud: { faults: true } });
    cluster = env.controlPlane.cluster;
  }, 120_000);
  afterAll(() => env?.[Symbol.asyncDispose]());

  const create = (namespace: string, name: string, vmname: string) =>
    cluster.api.create(vmsIn(namespace), bodyOf(name, vmname));
  const until = (namespace: string, name: string, is: (vm: KubeObject) => boolean) =>
    cluster.waitFor(`${vmsIn(namespace)}/${name}`, is);
  const named = async (...names: readonly string[]) =>
    (await env.servers()).filter(({ name }) => names.includes(name));

  test('deleting a namespace deletes its VMs and their machines, and no other machines', async () => {
    await cluster.kubectl(['create', 'namespace', 'doomed']);
    const names = ['vmdoomed-1', 'vmdoomed-2', 'vmdoomed-3'];
    await Promise.all(names.map((name) => create('doomed', name, name)));
    await create('default', 'outsider', 'vmoutsider');
    await Promise.all(names.map((name) => until('doomed', name, isRunning)));
    const vmId = status(await until('default', 'outsider', isRunning), 'vmId');
    // The next two VMs are admitted, but may have no machine yet when the deletion of the namespace begins.
    {
      await using _ = await failingCreates();
      await create('doomed', 'vmdoomed-unmade', 'vmdoomed-unmade');
      await until('doomed', 'vmdoomed-unmade', (vm) => status(vm, 'opStatus') === 'Unknown');
    }
    await create('doomed', 'vmdoomed-new', 'vmdoomed-new');
    await cluster.kubectl(['delete', 'namespace', 'doomed', '--wait=false']);
    await cluster.waitForGone('/api/v1/namespaces/doomed');
    expect(await named(...names, 'vmdoomed-unmade', 'vmdoomed-new')).toEqual([]);
    expect(await named('vmoutsider')).toMatchObject([{ id: vmId, state: 'running' }]);
    expect(status(await until('default', 'outsider', isRunning), 'vmId')).toBe(vmId);
  });

  describe('two VMs with the same vmname', () => {
    const manifest = (namespace: string, name: string, vmname: string) =>
      `apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: VM\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {vmname: ${vmname}}\n`;
    const takenElsewhere = (vmname: string) =>
      `The name "${vmname}" is already used by a VM in another namespace. Choose another vmname`;
    beforeAll(() => cluster.kubectl(['create', 'namespace', 'elsewhere']));

    test('a VM is rejected if another VM has the same vmname, even in another namespace', async () => {
      await create('default', 'first', 'vmtaken');
      const vmId = status(await until('default', 'first', isRunning), 'vmId');
      const denied = 'admission webhook "validate.v1alpha1.vms.samplecontroller.k8s.io" denied the request: ';
      expect(await env.refused(manifest('default', 'second', 'vmtaken'))).toContain(
        `${denied}The name "vmtaken" is already used by the VM "first" in this namespace. Choose another vmname, or delete that VM`,
      );
      const elsewhere = await env.refused(manifest('elsewhere', 'second', 'vmtaken'));
      expect(elsewhere).toContain(`${denied}${takenElsewhere('vmtaken')}`);
      expect(elsewhere).not.toContain('first');
      expect(await named('vmtaken')).toMatchObject([{ id: vmId }]);
    });

    test('if two VMs with the same vmname are admitted, one gets the machine, and the other reports NameTaken', async () => {
      const spaces = ['default', 'elsewhere'];
      {
        await using _ = await failingCreates();
        await Promise.all(spaces.map((namespace) => create(namespace, 'twin', 'vmtwin')));
        const isIn = (vm: KubeObject) => status(vm, 'opStatus') === 'Unknown' && isAccepted(vm) === 'True';
        await Promise.all(spaces.map((namespace) => until(namespace, 'twin', isIn)));
      }
      const isDecided = (vm: KubeObject) => isRunning(vm) || isAccepted(vm) === 'False';
      const twins = await Promise.all(spaces.map((namespace) => until(namespace, 'twin', isDecided)));
      const [winner, loser] = twins.toSorted((a, b) => Number(isRunning(b)) - Number(isRunning(a)));
      if (winner === undefined || loser === undefined) throw new Error('a twin is missing');
      const vmId = status(winner, 'vmId');
      expect([isRunning(winner), isRunning(loser)]).toEqual([true, false]);
      const message = takenElsewhere('vmtwin');
      expect(conditionOf(loser, 'NameAccepted')).toMatchObject({ status: 'False', reason: 'Taken', message });
      expect(conditionOf(loser, 'Ready')).toMatchObject({ status: 'False', reason: 'NameTaken', message });
      expect(loser.status).toMatchObject({ opStatus: 'Failed', msg: message });
      expect(status(loser, 'vmId')).toBeUndefined();
      expect(await named('vmtwin')).toMatchObject([{ id: vmId }]);

      await cluster.api.delete(`${vmsIn(winner.metadata.namespace ?? '')}/twin`);
      await cluster.waitForGone(`${vmsIn(winner.metadata.namespace ?? '')}/twin`);
      // The operator checks the name again after five minutes, or when the object changes, so the test changes the
      // object.
      const its = loser.metadata.namespace ?? '';
      await env.kubectl('-n', its, 'annotate', 'vms.samplecontroller.k8s.io', 'twin', 'touched=yes');
      const made = await until(its, 'twin', isRunning);
      expect(isAccepted(made)).toBe('True');
      expect(status(made, 'vmId')).not.toBe(vmId);
      expect(await named('vmtwin')).toMatchObject([
        { id: status(made, 'vmId'), labels: { 'vmwright.dev/uid': made.metadata.uid } },
      ]);
    });

    test('if two VMs with the same vmname are created at the same time, only one gets a machine', async () => {
      const names = Array.from({ length: 10 }, (_, index) => `pair-${index}`);
      const pairs = names.flatMap((name) =>
        ['default', 'elsewhere'].map((namespace) => ({ name, namespace })),
      );
      const answers = await Promise.allSettled(
        pairs.map(({ name, namespace }) => create(namespace, name, `vm${name}`)),
      );
      const refused = answers.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
      for (const reason of refused)
        expect(reason).toMatch(/The name "vmpair-\d" is already used by a VM in another /);
      const isDecided = (vm: KubeObject) => isRunning(vm) || isAccepted(vm) === 'False';
      const decided = await Promise.all(
        answers.flatMap((each) =>
          each.status === 'fulfilled'
            ? [until(each.value.metadata.namespace ?? '', each.value.metadata.name, isDecided)]
            : [],
        ),
      );
      const made = decided.filter(isRunning).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
      expect(made.map(({ metadata }) => metadata.name)).toEqual(names);
      for (const vm of decided.filter((each) => !isRunning(each)))
        expect(conditionOf(vm, 'NameAccepted')).toMatchObject({ reason: 'Taken' });
      const servers = await named(...names.map((name) => `vm${name}`));
      expect(servers.map(({ id }) => id).toSorted()).toEqual(made.map((vm) => status(vm, 'vmId')).toSorted());
    });
  });

  /** Makes the cloud fail all create requests until the result is disposed of. */
  async function failingCreates(): Promise<AsyncDisposable> {
    const faults = { errorRate: 1, routes: ['createServer'], seed: 1 };
    const answer = await env.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(faults) });
    expect(answer.status).toBeLessThan(300);
    return {
      [Symbol.asyncDispose]: async () => void (await env.cloud.fetch('/faults', { method: 'DELETE' })),
    };
  }
});

describe('with --namespaces', () => {
  const stack = new AsyncDisposableStack();
  let cluster: Cluster;
  let client: CloudClient;
  let operator: Part;
  beforeAll(async () => {
    const cloud = stack.use(await startCloud({ prohibited: ['vmforbidden'] }));
    client = stack.use(new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: cloud.apiKey }));
    cluster = stack.use(await startControlPlane()).cluster;
    for (const name of [SYSTEM, 'a', 'b', 'c']) await cluster.kubectl(['create', 'namespace', name]);
    const webhookPort = await freePort();
    await installOperator(cluster, SYSTEM, webhookPort, ['a', 'b']);
    operator = stack.use(
      await startOperator({
        cluster,
        cloud,
        webhookPort,
        namespace: SYSTEM,
        args: [...QUICK, ...QUICK_ELECTION, '--namespaces=a,b'],
      }),
    );
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  const create = (namespace: string, name: string, vmname: string) =>
    cluster.api.create(vmsIn(namespace), bodyOf(name, vmname));
  const until = (namespace: string, name: string, is: (vm: KubeObject) => boolean) =>
    cluster.waitFor(`${vmsIn(namespace)}/${name}`, is);
  const servers = async () => {
    const all: Server[] = [];
    for await (const page of client.list()) all.push(...page);
    return all;
  };
  /** Creates a server directly in the cloud. By default, its ownership labels name a VM that never existed. */
  const machineFor = async (namespace: string, uid = '00000000-0000-4000-8000-000000000000') => {
    const { metadata } = await cluster.api.get('/api/v1/namespaces/kube-system');
    const labels = {
      'vmwright.dev/cluster': metadata.uid,
      'vmwright.dev/uid': uid,
      'vmwright.dev/namespace': namespace,
      'vmwright.dev/name': 'x',
    };
    const name = `vmorphan-${namespace}-${uid.slice(0, 8)}`;
    return (await client.create({ name, labels }, undefined)).id;
  };
  /** Creates a server for a deleted VM, like a create request that was delayed in the network. */
  const lateIn = async (namespace: string) => {
    const { metadata } = await create(namespace, 'late', `vmlate-${namespace}`);
    await until(namespace, 'late', isRunning);
    await cluster.kubectl(['-n', namespace, 'delete', 'vms.samplecontroller.k8s.io', 'late']);
    return machineFor(namespace, metadata.uid);
  };
  const untilGone = (...ids: readonly unknown[]) =>
    expect
      .poll(async () => (await servers()).map(({ id }) => id).filter((id) => ids.includes(id)), {
        timeout: 60_000,
      })
      .toEqual([]);

  test('with --namespaces, the operator may list VMs only in these namespaces', async () => {
    const may = async (namespace: string) => {
      const as = `--as=system:serviceaccount:${SYSTEM}:vmwright`;
      const question = ['auth', 'can-i', 'list', 'vms.samplecontroller.k8s.io', as];
      return (await cluster.tryKubectl([...question, '-n', namespace])).stdout.trim();
    };
    expect(await Promise.all(['a', 'b', 'c', SYSTEM].map(may))).toEqual(['yes', 'yes', 'no', 'no']);
  });

  test('with --namespaces, VMs in these namespaces run, and the operator ignores VMs in other namespaces', async () => {
    await expect(create('a', 'refused', 'vmforbidden')).rejects.toThrow(
      'The name "vmforbidden" is prohibited.',
    );
    await create('c', 'foreign', 'vmforbidden'); // a prohibited name, which the webhook does not check in this namespace
    await create('c', 'unseen', 'vmunseen');
    for (const namespace of ['a', 'b']) {
      await create(namespace, 'seen', `vmseen-${namespace}`);
      const vm = await until(namespace, 'seen', isRunning);
      expect(vm.metadata).toMatchObject({ finalizers: ['vmwright.dev/vm'] });
    }
    const foreign = await cluster.api.list(vmsIn('c'));
    expect(foreign.map(({ metadata }) => metadata.name)).toEqual(['foreign', 'unseen']);
    for (const vm of foreign) {
      expect(vm.status).toEqual({ observedGeneration: -1 }); // the default of the CRD: the operator wrote no status
      expect(vm.metadata).not.toHaveProperty('finalizers');
    }
    expect((await servers()).map(({ name }) => name).toSorted()).toEqual(['vmseen-a', 'vmseen-b']);
    await cluster.kubectl(['-n', 'a', 'delete', 'vms.samplecontroller.k8s.io', 'seen']);
    expect((await servers()).map(({ name }) => name)).toEqual(['vmseen-b']);
  });

  test('with --namespaces, garbage collection deletes machines of deleted VMs only in these namespaces', async () => {
    const there = await create('c', 'there', 'vmthere');
    const elsewhere = [await machineFor('c'), await machineFor('c', there.metadata.uid)];
    // The machines of the namespaces a and b are created last. So the garbage collection that deletes them has also
    // listed the machines of the namespace c.
    const ours = [await lateIn('a'), await lateIn('b')];
    await untilGone(...ours);
    const left = (await servers()).map(({ id }) => id);
    expect(left).toEqual(expect.arrayContaining(elsewhere));
  });

  test('if the RoleBinding of a namespace is deleted before its VM, the namespace stays Terminating until a ClusterRoleBinding is created', async () => {
    const LONG = { timeoutMs: 150_000 };
    const { uid } = (await create('b', 'doomed', 'vmdoomed')).metadata;
    const vmId = status(await until('b', 'doomed', isRunning), 'vmId');
    // The namespace controller decides in which order it deletes objects. The operator is paused, because it would
    // often finish before the RoleBinding is deleted.
    operator.pause();
    await cluster.kubectl(['delete', 'namespace', 'b', '--wait=false']);
    await cluster.waitForGone('/apis/rbac.authorization.k8s.io/v1/namespaces/b/rolebindings/vmwright-vm');
    operator.resume();
    await untilGone(vmId);
    const log = () => readFile(operator.log, 'utf8');
    const isForbidden = async () =>
      /PATCH \S*\/namespaces\/b\/vms\/doomed: .* is forbidden/.test(await log());
    await expect.poll(isForbidden, { timeout: 60_000 }).toBe(true);
    await create('a', 'unaffected', 'vmunaffected');
    await until('a', 'unaffected', isRunning);

    await operator.kill();
    await operator.start(); // resolves when the operator is ready
    await create('a', 'restarted', 'vmrestarted');
    await until('a', 'restarted', isRunning);
    const port = /"msg":"Serving metrics, health[^\n]*"port":(\d+)/.exec(await log())?.[1];
    const readiness = await (await fetch(`http://127.0.0.1:${port}/readyz?verbose`)).text();
    expect(readiness).toContain('[+]caches ok: cannot list vms.samplecontroller.k8s.io in b\n');
    // The operator cannot read the VMs of the namespace b, so it keeps their machines. In the namespace a, it still
    // deletes the machines of deleted VMs.
    const unjudged = await machineFor('b', uid);
    await untilGone(await lateIn('a'));
    expect((await servers()).map(({ id }) => id)).toContain(unjudged);
    expect((await cluster.api.get(`${vmsIn('b')}/doomed`)).metadata).toMatchObject({
      finalizers: ['vmwright.dev/vm'],
      deletionTimestamp: expect.any(String),
    });

    // The remedy that docs/vm.md documents.
    await cluster.kubectl(page('vm.md').match(RESCUE)?.[0].split(' ').slice(1) ?? []);
    await cluster.waitForGone('/api/v1/namespaces/b', LONG);
    await untilGone(unjudged);
    await cluster.kubectl(['delete', 'clusterrolebinding', 'vmwright-rescue']);
    expect((await servers()).map(({ name }) => name).toSorted()).toEqual(
      expect.arrayContaining(['vmunaffected', 'vmrestarted']),
    );
    expect((await servers()).filter(({ labels }) => labels['vmwright.dev/namespace'] === 'b')).toEqual([]);
    await create('a', 'after', 'vmafter');
    await until('a', 'after', isRunning);
    await cluster.kubectl([
      '-n',
      'a',
      'delete',
      'vms.samplecontroller.k8s.io',
      'unaffected',
      'restarted',
      'after',
    ]);
  }, 300_000);
});
