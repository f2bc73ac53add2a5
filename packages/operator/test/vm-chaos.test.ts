import { setTimeout as sleep } from 'node:timers/promises';
import { CloudError, ConnectionError } from '@vmwright/cloud';
import { ApiError, field, type KubeObject, type Part, Random } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { install, VMS } from './with-cloud.ts';

const ROUNDS = 100;
const SEED = Number(process.env.CHAOS_SEED ?? 20261116);
/** So often all heals, and is held to what the cloud itself has written down. */
const CHECK_EVERY = 10;
const NAMES = Array.from({ length: 12 }, (_, i) => `vm-${i}`);

interface Fault {
  readonly name: string;
  readonly strike: () => Promise<unknown>;
}

const QUICK_ELECTION = [
  '--leader-elect-lease-duration=2s',
  '--leader-elect-renew-deadline=1200ms',
  '--leader-elect-retry-period=300ms',
];

/**
 * Users create and delete VMs while operators and the cloud are killed at random points and answers get lost after their
 * effect. An auditor reads the cloud's own book and the API server's objects, past the operator.
 */
test(`no machine is doubled or lost, whoever is killed (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const random = new Random(SEED);
  await using it = await install({
    args: ['--vm-refresh=1s', '--vm-sweep=1s', '--cloud-timeout=1s', ...QUICK_ELECTION],
    cloud: { faults: true },
  });
  const { api } = it.controlPlane.cluster;
  const second = await it.replica();
  const ids = new VmIds((path, signal) => api.watch(path, signal));
  const count: Record<string, number> = {};
  let lost = 0;
  const lostAnswers = async () => {
    const report = await (await it.cloud.fetch('/faults')).json();
    return Number(field(report, 'lostAfter'));
  };

  const restarted = async (part: Part) => {
    await part.kill();
    await sleep(random.below(200)); // how long it is away, not something that is waited for
    await part.start();
  };
  const faults: readonly [Fault, ...Fault[]] = [
    { name: 'the first operator is killed', strike: () => restarted(it.operator) },
    { name: 'the second operator is killed', strike: () => restarted(second) },
    {
      name: 'both operators are killed',
      strike: () => Promise.all([restarted(it.operator), restarted(second)]),
    },
    { name: 'the cloud is killed', strike: () => restarted(it.cloud.part) },
    {
      name: 'cloud and operator are killed',
      strike: () => Promise.all([restarted(it.cloud.part), restarted(it.operator)]),
    },
    {
      name: 'an operator sleeps longer than its lease',
      strike: async () => {
        it.operator.pause();
        await sleep(2_500);
        it.operator.resume();
      },
    },
    { name: 'answers get lost', strike: () => sleep(random.below(300)) },
  ];

  const change = async () => {
    const name = NAMES[random.below(NAMES.length)] ?? '';
    if (random.next() < 0.55) await created(() => it.vm(name, name));
    else await ignoring(api.delete(`${VMS}/${name}`));
  };

  for (let round = 1; round <= ROUNDS; round++) {
    const { name: fault, strike } = random.pick(faults);
    count[fault] = (count[fault] ?? 0) + 1;
    const lossy = {
      seed: random.below(2 ** 31),
      loseAnswersAfterEffect: 0.3,
      loseBefore: 0.1,
      latencyMs: { min: 0, max: 80 },
    };
    await it.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(lossy) }).catch(() => undefined);
    const changes = Array.from({ length: 1 + random.below(5) }, change);
    await sleep(random.below(250));
    await Promise.all([strike(), ...changes]);
    lost += await lostAnswers();
    if (round % CHECK_EVERY !== 0) continue;

    await it.cloud.fetch('/faults', { method: 'DELETE' });
    const story = `after round ${round} of seed ${SEED}, last fault: ${fault}`;
    await expect.poll(() => problems(), { message: story, timeout: 60_000, interval: 300 }).toEqual([]);
    expect(doubled(await it.cloud.audit()), story).toEqual([]);
    expect(ids.changed, story).toEqual([]);
  }
  for (const { name } of faults) expect(count[name], `rounds in which ${name}`).toBeGreaterThan(0);

  // That it bites: machines were made, answers were lost, and every object was followed.
  const audit = await it.cloud.audit();
  expect(audit.filter(({ event }) => event === 'created').length).toBeGreaterThan(ROUNDS / 2);
  expect(lost).toBeGreaterThan(ROUNDS / 4);
  expect(ids.followed).toBeGreaterThan(ROUNDS / 2);

  for (const { metadata } of await objects()) await ignoring(api.delete(`${VMS}/${metadata.name}`));
  await expect.poll(async () => (await objects()).length, { timeout: 60_000 }).toBe(0);
  await expect.poll(async () => (await it.servers()).length, { timeout: 60_000 }).toBe(0);
  expect(doubled(await it.cloud.audit())).toEqual([]);

  async function objects(): Promise<readonly KubeObject[]> {
    return api.list(VMS);
  }

  /** What is not yet as it should be, by the API server and the cloud themselves. */
  async function problems(): Promise<readonly string[]> {
    const servers = await it.servers().catch((error) => {
      if (error instanceof CloudError || error instanceof ConnectionError) return undefined;
      throw error;
    });
    if (servers === undefined) return ['the cloud does not answer'];
    const vms = await objects();
    const uids = new Set(vms.map(({ metadata }) => metadata.uid));
    const strays = servers.filter(({ labels }) => !uids.has(labels['vmwright.dev/uid'] ?? ''));
    const wrong = vms.filter((vm) => {
      const own = servers.filter(({ labels }) => labels['vmwright.dev/uid'] === vm.metadata.uid);
      const [server] = own;
      const isTold =
        field(vm, 'status', 'vmId') === server?.id && field(vm, 'status', 'opStatus') === 'Running';
      return own.length !== 1 || !isTold || vm.metadata.deletionTimestamp !== undefined;
    });
    return [...strays.map(({ id }) => `server ${id} is nobody's`), ...wrong.map((vm) => JSON.stringify(vm))];
  }
}, 900_000);

/** Machines of one object that were there at the same time, by the cloud's own book. */
function doubled(
  audit: readonly { readonly event: string; readonly id: string; readonly key?: string }[],
): readonly string[] {
  const live = new Map<string, string>();
  const found: string[] = [];
  for (const { event, id, key = id } of audit) {
    const [uid = ''] = key.split('.');
    const other = live.get(uid);
    if (event === 'created' && other !== undefined && other !== id)
      found.push(`${uid} had ${other} and ${id}`);
    if (event === 'created') live.set(uid, id);
    if (event === 'deleted' && other === id) live.delete(uid);
  }
  return found;
}

/** The ids that objects have told, by a watch of its own. */
class VmIds {
  readonly changed: string[] = [];
  readonly #ids = new Map<string, unknown>();

  constructor(watch: (path: string, signal: AbortSignal) => AsyncIterable<{ readonly object: KubeObject }>) {
    const follow = async () => {
      for (;;) for await (const { object } of watch(VMS, new AbortController().signal)) this.#see(object);
    };
    follow().catch(() => undefined); // it ends with the API server
  }

  /** How many objects have told one. */
  get followed(): number {
    return [...this.#ids.values()].filter((id) => id !== undefined).length;
  }

  #see(vm: KubeObject): void {
    const { uid = '', name } = vm.metadata;
    const before = this.#ids.get(uid);
    const id = field(vm, 'status', 'vmId') ?? before;
    if (before !== undefined && id !== before)
      this.changed.push(`${name}: ${String(before)} became ${String(id)}`);
    this.#ids.set(uid, id);
  }
}

/** A user who is refused because nobody answers the webhook tries again for a while; one whose name is taken does not. */
async function created(create: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await create();
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const isUnanswered =
        /webhook|could not be checked/.test(error.message) && !/is already used/.test(error.message);
      if (!isUnanswered || tries === 20) return;
      await sleep(150); // as a person would
    }
  }
}

async function ignoring(deleting: Promise<unknown>): Promise<void> {
  await deleting.catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
}
