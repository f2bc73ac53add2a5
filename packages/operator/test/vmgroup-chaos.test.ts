import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, budget, field, type KubeObject, type Part, Random } from '@vmwright/testbed';
import { isRef, type Ref } from '@vmwright/vsphere';
import { expect, test } from 'vitest';
import { QUICK_ELECTION } from './installed.ts';
import { GROUPS, install, TEMPLATE } from './with-vcenter.ts';

const ROUNDS = budget(20, 100);
const SEED = Number(process.env.CHAOS_SEED ?? 20261117);
/** Number of rounds between two checks. At a check, all faults are cleared and the state is checked. */
const CHECK_EVERY = 10;
const NAMES = ['one', 'two', 'three', 'four'];
const TEMPLATES = [TEMPLATE, 'other-template'];

interface Fault {
  readonly name: string;
  readonly strike: () => Promise<unknown>;
}

/**
 * Users create, scale, change and delete groups while operators are killed and vCenter loses sessions, connections and
 * tasks. The test watches vCenter directly for duplicates.
 */
test(`when operators are killed and vCenter fails, no machine is duplicated, lost or left behind (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const random = new Random(SEED);
  await using env = await install({
    vcsim: { templates: TEMPLATES },
    args: ['--vmgroup-sweep=1s', '--vsphere-timeout=2s', ...QUICK_ELECTION],
  });
  const { api } = env.controlPlane.cluster;
  const { control } = env.vcsim;
  const second = await env.replica();
  const foreign = await makeForeign();
  const audit = auditDuplicates();
  const count: Record<string, number> = {};

  const restart = async (part: Part) => {
    await part.kill();
    await sleep(random.below(200)); // duration of the downtime
    await part.start();
  };
  const faults: readonly Fault[] = [
    { name: 'the first operator is killed', strike: () => restart(env.operator) },
    { name: 'the second operator is killed', strike: () => restart(second) },
    {
      name: 'both operators are killed',
      strike: () => Promise.all([restart(env.operator), restart(second)]),
    },
    {
      name: 'an operator is suspended for longer than its lease',
      strike: async () => {
        env.operator.pause();
        await sleep(2_500);
        env.operator.resume();
      },
    },
    { name: 'sessions are killed', strike: () => control.expireSessions() },
    { name: 'connections are reset', strike: () => control.drop() },
    { name: 'vCenter responds with 503', strike: () => control.status(503, 1 + random.below(20)) },
    {
      name: 'calls are rejected',
      strike: () =>
        control.fault({ method: 'CloneVM_Task', fault: 'NoPermission', max: 1 + random.below(4) }),
    },
    {
      name: 'clones fail',
      strike: () => control.fault({ task: 'CloneVm', fault: 'NoDiskSpace', max: 1 + random.below(4) }),
    },
    {
      name: 'removals fail',
      strike: () => control.fault({ task: 'Destroy', fault: 'ResourceInUse', max: 1 + random.below(3) }),
    },
    {
      name: 'responses to clone requests are late',
      strike: async () => {
        await control.delay({ methods: { CloneVM_Task: 2_500 } });
        await sleep(random.below(1_000));
        await control.delay({ methods: {} });
      },
    },
    {
      name: 'a machine is deleted',
      strike: async () => {
        const [machine] = await env.machines().catch(() => []); // vCenter may be unavailable
        if (machine === undefined) return;
        const vm = { type: 'VirtualMachine', value: machine.id } as const;
        const { machines, tasks } = env.vcenter;
        const ignore = () => undefined; // the operator may have removed it already
        await machines
          .powerOff(vm)
          .then((task) => tasks.follow(task))
          .catch(ignore);
        await machines
          .destroy(vm)
          .then((task) => tasks.follow(task))
          .catch(ignore);
      },
    },
  ];

  const change = async () => {
    const path = `${GROUPS}/${random.pick(NAMES)}`;
    const chance = random.next();
    const spec = { replicas: random.below(5), template: random.pick(TEMPLATES), cpu: 1 + random.below(2) };
    if (chance < 0.4) await ignoring(env.group(path.slice(GROUPS.length + 1), spec), 409);
    else if (chance < 0.85) await ignoring(api.merge(path, { spec }), 404);
    else await ignoring(api.delete(path), 404);
  };

  for (const [index, { name: fault, strike }] of random.cycles(faults, ROUNDS).entries()) {
    const round = index + 1;
    count[fault] = (count[fault] ?? 0) + 1;
    await control.delay({ tasks: { CloneVm: random.below(300), PowerOff: random.below(100) } });
    const changes = Array.from({ length: 3 + random.below(3) }, change);
    await sleep(random.below(250));
    await Promise.all([strike(), ...changes]);
    if (round % CHECK_EVERY !== 0) continue;

    await Promise.all([control.clearFaults(), control.clearDelays(), control.clearStatus()]);
    const message = `after round ${round} of seed ${SEED}, last fault: ${fault}`;
    await expect.poll(() => problems(), { message, timeout: 120_000, interval: 300 }).toEqual([]);
    expect(audit.duplicates, message).toEqual([]);
    // Polled: if the response to a login is lost, the client terminates the session of that login only after its next
    // login.
    await expect.poll(() => duplicateSessions(), { message }).toEqual([]);
  }
  for (const { name } of faults) expect(count[name], `rounds in which ${name}`).toBeGreaterThan(0);
  expect(audit.seen).toBeGreaterThan(ROUNDS / 4); // the audit saw machines; their number depends on timing

  for (const { metadata } of await api.list(GROUPS))
    await ignoring(api.delete(`${GROUPS}/${metadata.name}`), 404);
  await expect.poll(async () => (await api.list(GROUPS)).length, { timeout: 120_000 }).toBe(0);
  await expect
    .poll(async () => [await env.machines(), await env.folders()], { timeout: 60_000 })
    .toEqual([[], ['default-foreign']]);
  expect((await env.machines('default-foreign')).map(({ id }) => id)).toEqual([foreign]);

  /** Returns the differences between the groups in the API server and the machines in vCenter. */
  async function problems(): Promise<readonly string[]> {
    const groups = await api.list(GROUPS);
    const machines = await env.machines();
    const folders = new Set(groups.map(({ metadata }) => `default-${metadata.name}`));
    const orphans = machines.filter(({ folder }) => !folders.has(folder ?? ''));
    const wrong = groups.filter((group) => !isDone(group, machines));
    return [
      ...orphans.map(({ name }) => `machine ${name} belongs to no group`),
      ...(await env.folders())
        .filter((name) => !folders.has(name) && name !== 'default-foreign')
        .map((name) => `folder ${name} belongs to no group`),
      ...wrong.map((group) => JSON.stringify(field(group, 'status'))),
    ];
  }

  function isDone(group: KubeObject, machines: Awaited<ReturnType<typeof env.machines>>): boolean {
    const own = machines.filter(({ folder }) => folder === `default-${group.metadata.name}`);
    const matchesSpec = own.every(
      ({ power, cpus }) => power === 'poweredOn' && cpus === field(group, 'spec', 'cpu'),
    );
    return (
      group.metadata.deletionTimestamp === undefined &&
      field(group, 'status', 'phase') === 'RUNNING' &&
      field(group, 'status', 'updatedReplicas') === field(group, 'spec', 'replicas') &&
      own.length === field(group, 'spec', 'replicas') &&
      matchesSpec
    );
  }

  /** Records machines that exist at the same time with the same UUID. */
  function auditDuplicates(): { readonly duplicates: readonly string[]; readonly seen: number } {
    const live = new Map<string, Ref<'VirtualMachine'>>();
    const duplicates: string[] = [];
    const ids = new Set<string>();
    const inventory = env.vcenter.inventory({ properties: { VirtualMachine: ['config.instanceUuid'] } });
    inventory.onChange(({ kind, object: { ref, properties } }) => {
      if (!isRef(ref, 'VirtualMachine')) return;
      const uuid = String(properties['config.instanceUuid']);
      const other = live.get(uuid);
      if (kind === 'removed') {
        if (other?.value === ref.value) live.delete(uuid);
        return;
      }
      ids.add(ref.value);
      live.set(uuid, ref);
      if (other === undefined || other.value === ref.value) return;
      // After a lost session, the inventory reports new machines before it drops removed ones. So the test asks vCenter
      // whether the earlier machine with the same UUID still exists.
      const exists = () => duplicates.push(`${uuid}: ${other.value}, ${ref.value}`);
      env.vcenter.read(other, ['name']).then(exists, () => undefined);
    });
    return {
      duplicates,
      get seen() {
        return ids.size;
      },
    };
  }

  /**
   * Returns the user agents with more than one session. Each process has its own agent and may have only one session.
   */
  async function duplicateSessions(): Promise<readonly string[]> {
    const agents = (await control.sessions()).map(({ agent }) => agent);
    return agents.filter((agent, index) => agents.indexOf(agent) < index);
  }

  async function makeForeign(): Promise<string> {
    const { lookup, machines, tasks } = env.vcenter;
    await env.group('foreign', { replicas: 1 });
    await env.running('foreign', 1);
    const datacenter = await lookup.datacenter();
    const cloned = await tasks.follow(
      await machines.clone({
        name: 'not-ours',
        template: await lookup.template(datacenter, TEMPLATE),
        folder: await lookup.folder(datacenter, 'vm-operator/default-foreign'),
        resourcePool: await lookup.resourcePool(datacenter),
      }),
    );
    await env.kubectl('delete', 'vmgroup', 'foreign');
    if (!isRef(cloned, 'VirtualMachine')) throw new Error('the clone task returned no machine');
    return cloned.value;
  }
}, 1_200_000);

/** Ignores an API error with this status. */
async function ignoring(request: Promise<unknown>, status: number): Promise<void> {
  await request.catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === status)) throw error;
  });
}
