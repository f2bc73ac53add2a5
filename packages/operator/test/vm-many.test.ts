import { field, type KubeObject } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { install, VMS, type WithCloud } from './with-cloud.ts';

const VMS_AT_ONCE = 1_000;
/** Number of VMs that are paused until all others run. The leader is killed while it creates their machines. */
const PAUSED = 300;
/** Expected cloud requests per VM: the webhook's name check, the controller's name check, and the create. */
const CALLS_EACH = 3;

test(`${VMS_AT_ONCE} new VMs all run although the leader is killed, with few cloud requests and no writes when idle`, async () => {
  await using env = await install({
    args: [
      '--vm-refresh=1s',
      '--leader-elect-lease-duration=3s',
      '--leader-elect-renew-deadline=2s',
      '--leader-elect-retry-period=500ms',
    ],
    cloud: {
      config: {
        observeEveryMs: 100,
        simulated: { bootMs: { min: 50, max: 500 }, cpu: { min: 50, max: 50, noise: 0 } },
      },
    },
  });
  const replicas = [env.operator, await env.replica()];
  const names = Array.from({ length: VMS_AT_ONCE }, (_, i) => `many-${i}`);
  const paused = new Set(names.slice(0, PAUSED)); // created last
  await each(names, (name) =>
    env.vm(name, name, paused.has(name) ? { 'vmwright.dev/paused': 'true' } : undefined),
  );
  const leaders = async () => {
    const leads = await Promise.all(replicas.map((replica) => env.leads(replica)));
    return replicas.filter((_, index) => leads[index]);
  };
  await expect.poll(leaders).toHaveLength(1);
  await expect.poll(() => running(env), { timeout: 120_000, interval: 500 }).toBe(VMS_AT_ONCE - PAUSED);
  const { api } = env.controlPlane.cluster;
  const resuming = each([...paused], (name) =>
    api.merge(`${VMS}/${name}`, { metadata: { annotations: { 'vmwright.dev/paused': null } } }),
  );
  let creates = 0;
  const countCreates = async () => {
    creates = (await cloudCalls(env)).get('POST /servers') ?? 0;
    return creates;
  };
  await expect.poll(countCreates).toBeGreaterThan(VMS_AT_ONCE - PAUSED);
  expect(creates).toBeLessThan(VMS_AT_ONCE);
  for (const leader of await leaders()) await leader.kill(); // the other replica takes over
  await resuming;
  await expect.poll(() => running(env), { timeout: 120_000, interval: 500 }).toBe(VMS_AT_ONCE);
  const servers = await env.servers();
  expect(new Set(servers.map(({ labels }) => labels['vmwright.dev/uid'])).size).toBe(VMS_AT_ONCE);
  expect(servers).toHaveLength(VMS_AT_ONCE);

  const calls = await cloudCalls(env);
  // Allowance for the requests that were in flight when the leader was killed, which the next leader repeats.
  const repeated = 100;
  expect((calls.get('/check/{name}') ?? 0) + (calls.get('POST /servers') ?? 0)).toBeLessThanOrEqual(
    CALLS_EACH * VMS_AT_ONCE + repeated,
  );
  expect(calls.get('/servers/{id}') ?? 0).toBeLessThanOrEqual(repeated);

  expect(calls.get('POST /servers')).toBeGreaterThanOrEqual(VMS_AT_ONCE);

  await refreshed(env, 3); // the operator has observed its own last writes
  const before = await writes(env);
  expect(before).toBeGreaterThan(3 * VMS_AT_ONCE);
  await refreshed(env, 6);
  expect(await writes(env)).toBe(before);
}, 300_000);

/** Calls a function for each of the names, beginning with the last one, with 16 calls at a time. */
async function each(names: readonly string[], call: (name: string) => Promise<unknown>): Promise<void> {
  const left = [...names];
  const work = async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await call(name);
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

/** Waits until the operator has listed all servers this many times. */
async function refreshed(env: WithCloud, times: number): Promise<void> {
  const lists = async () => (await cloudCalls(env)).get('GET /servers') ?? 0;
  const before = await lists();
  await expect.poll(lists, { timeout: 60_000 }).toBeGreaterThanOrEqual(before + times);
}

async function running({ controlPlane }: WithCloud): Promise<number> {
  const vms: readonly KubeObject[] = await controlPlane.cluster.api.list(VMS);
  return vms.filter((vm) => field(vm, 'status', 'opStatus') === 'Running').length;
}

/** Returns the number of requests per route, from the cloud's metrics. */
async function cloudCalls({ cloud }: WithCloud): Promise<ReadonlyMap<string, number>> {
  const text = await (await cloud.fetch('/metrics')).text();
  const calls = new Map<string, number>();
  for (const [, labels = '', count] of text.matchAll(
    /^vmwright_cloud_http_request_duration_seconds_count\{(.*)\} (\d+)$/gm,
  )) {
    const route = /route="([^"]*)"/.exec(labels)?.[1] ?? '';
    const method = /method="([^"]*)"/.exec(labels)?.[1] ?? '';
    const key = route === '/servers' ? `${method} ${route}` : route;
    calls.set(key, (calls.get(key) ?? 0) + Number(count));
  }
  return calls;
}

/** Returns the number of write requests for VMs, from the API server's metrics. */
async function writes({ controlPlane }: WithCloud): Promise<number> {
  const text = await controlPlane.cluster.api.text('/metrics');
  let sum = 0;
  for (const [, labels = '', count] of text.matchAll(/^apiserver_request_total\{([^}]*)\} (\S+)/gm))
    if (/resource="vms"/.test(labels) && /verb="(POST|PUT|PATCH|APPLY|DELETE)"/.test(labels))
      sum += Number(count);
  return sum;
}
