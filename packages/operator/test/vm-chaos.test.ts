import { setTimeout as sleep } from 'node:timers/promises';
import { CloudError, ConnectionError } from '@vmwright/cloud';
import { ApiError, budget, field, type KubeObject, type Part, Random } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { QUICK_ELECTION } from './installed.ts';
import { install, VMS } from './with-cloud.ts';

const ROUNDS = budget(20, 100);
const SEED = Number(process.env.CHAOS_SEED ?? 20261116);
/** Number of rounds between two checks. At a check, the faults stop, and the objects are compared with the cloud. */
const CHECK_EVERY = 10;
const NAMES = Array.from({ length: 12 }, (_, i) => `vm-${i}`);

interface Fault {
  readonly name: string;
  readonly strike: () => Promise<unknown>;
}

/**
 * Users create and delete VMs. Operators and the cloud are killed at random moments, and responses of the cloud are
 * lost after the cloud has executed the request. The test reads the servers and the audit log directly from the cloud,
 * and compares them with the objects in the API server.
 */
test(`when operators and the cloud are killed, no machine is duplicated or lost (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const random = new Random(SEED);
  await using env = await install({
    args: ['--vm-refresh=1s', '--vm-sweep=1s', '--cloud-timeout=1s', ...QUICK_ELECTION],
    cloud: { faults: true },
  });
  const { api } = env.controlPlane.cluster;
  const second = await env.replica();
  const ids = new VmIds((path, signal) => api.watch(path, signal));
  const count: Record<string, number> = {};
  let lost = 0;
  const lostAnswers = async () => {
    const report = await (await env.cloud.fetch('/faults')).json();
    return Number(field(report, 'lostAfter'));
  };

  const restarted = async (part: Part) => {
    await part.kill();
    await sleep(random.below(200)); // duration of the downtime
    await part.start();
  };
  const faults: readonly Fault[] = [
    { name: 'the first operator is killed', strike: () => restarted(env.operator) },
    { name: 'the second operator is killed', strike: () => restarted(second) },
    {
      name: 'both operators are killed',
      strike: () => Promise.all([restarted(env.operator), restarted(second)]),
    },
    { name: 'the cloud is killed', strike: () => restarted(env.cloud.part) },
    {
      name: 'cloud and operator are killed',
      strike: () => Promise.all([restarted(env.cloud.part), restarted(env.operator)]),
    },
    {
      name: 'an operator sleeps longer than its lease',
      strike: async () => {
        env.operator.pause();
        await sleep(2_500);
        env.operator.resume();
      },
    },
    {
      name: 'answers get lost',
      strike: () => expect.poll(lostAnswers, { timeout: 60_000 }).toBeGreaterThan(2),
    },
  ];

  const change = async () => {
    const name = NAMES[random.below(NAMES.length)] ?? '';
    if (random.next() < 0.55) await created(() => env.vm(name, name));
    else await ignoring(api.delete(`${VMS}/${name}`));
  };

  for (const [index, { name: fault, strike }] of random.cycles(faults, ROUNDS).entries()) {
    const round = index + 1;
    count[fault] = (count[fault] ?? 0) + 1;
    const lossy = {
      seed: random.below(2 ** 31),
      loseAnswersAfterEffect: 0.3,
      loseBefore: 0.1,
      latencyMs: { min: 0, max: 80 },
    };
    await env.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(lossy) }).catch(() => undefined);
    const changes = Array.from({ length: 1 + random.below(5) }, change);
    await sleep(random.below(250));
    await Promise.all([strike(), ...changes]);
    lost += await lostAnswers();
    if (round % CHECK_EVERY !== 0) continue;

    await env.cloud.fetch('/faults', { method: 'DELETE' });
    const story = `after round ${round} of seed ${SEED}, last fault: ${fault}`;
    await expect.poll(() => problems(), { message: story, timeout: 60_000, interval: 300 }).toEqual([]);
    expect(doubled(await env.cloud.audit()), story).toEqual([]);
    expect(ids.changed, story).toEqual([]);
  }
  for (const { name } of faults) expect(count[name], `rounds in which ${name}`).toBeGreaterThan(0);

  // Guards against a test without effect: machines were created, responses were lost, and the watch saw vmIds.
  const audit = await env.cloud.audit();
  expect(audit.filter(({ event }) => event === 'created').length).toBeGreaterThan(ROUNDS / 2);
  expect(lost).toBeGreaterThan(ROUNDS / 4);
  expect(ids.count).toBeGreaterThan(ROUNDS / 2);

  for (const { metadata } of await objects()) await ignoring(api.delete(`${VMS}/${metadata.name}`));
  await expect.poll(async () => (await objects()).length, { timeout: 60_000 }).toBe(0);
  await expect.poll(async () => (await env.servers()).length, { timeout: 60_000 }).toBe(0);
  expect(doubled(await env.cloud.audit())).toEqual([]);

  async function objects(): Promise<readonly KubeObject[]> {
    return api.list(VMS);
  }

  /** Returns differences between the objects in the API server and the servers in the cloud. */
  async function problems(): Promise<readonly string[]> {
    const servers = await env.servers().catch((error) => {
      if (error instanceof CloudError || error instanceof ConnectionError) return undefined;
      throw error;
    });
    if (servers === undefined) return ['the cloud does not answer'];
    const vms = await objects();
    const uids = new Set(vms.map(({ metadata }) => metadata.uid));
    const orphans = servers.filter(({ labels }) => !uids.has(labels['vmwright.dev/uid'] ?? ''));
    const wrong = vms.filter((vm) => {
      const own = servers.filter(({ labels }) => labels['vmwright.dev/uid'] === vm.metadata.uid);
      const [server] = own;
      const isReported =
        field(vm, 'status', 'vmId') === server?.id && field(vm, 'status', 'opStatus') === 'Running';
      return own.length !== 1 || !isReported || vm.metadata.deletionTimestamp !== undefined;
    });
    return [...orphans.map(({ id }) => `server ${id} has no VM`), ...wrong.map((vm) => JSON.stringify(vm))];
  }
}, 900_000);

/** Returns each pair of machines that existed at the same time for one object, according to the cloud's audit log. */
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

/** Watches all VMs, and records each change of a vmId. */
class VmIds {
  readonly changed: string[] = [];
  readonly #ids = new Map<string, unknown>();

  constructor(watch: (path: string, signal: AbortSignal) => AsyncIterable<{ readonly object: KubeObject }>) {
    const follow = async () => {
      for (;;) for await (const { object } of watch(VMS, new AbortController().signal)) this.#see(object);
    };
    follow().catch(() => undefined); // the watch runs until the API server stops, and then fails
  }

  /** Number of objects that had a vmId. */
  get count(): number {
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

/**
 * Creates an object. Retries up to 20 times while the webhook does not answer; gives up on other errors of the API
 * server.
 */
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
      await sleep(150); // a user would not retry immediately
    }
  }
}

async function ignoring(deleting: Promise<unknown>): Promise<void> {
  await deleting.catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
}
