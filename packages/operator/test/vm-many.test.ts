import { field, type KubeObject } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { install, VMS, type WithCloud } from './with-cloud.ts';

const VMS_AT_ONCE = 1_000;
/** Three for each: the webhook's check, the controller's, and the create. */
const CALLS_EACH = 3;

test(`${VMS_AT_ONCE} VMs at once, the leader killed among them: all run, with few calls, and then nobody writes`, async () => {
  await using it = await install({
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
  await it.replica();
  const names = Array.from({ length: VMS_AT_ONCE }, (_, i) => `many-${i}`);
  const create = async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) await it.vm(name, name);
  };
  await Promise.all(Array.from({ length: 16 }, create));
  expect(await it.leads(it.operator)).toBe(true);
  await it.operator.kill(); // the other takes over in the middle
  expect(await running(it)).toBeLessThan(VMS_AT_ONCE);
  await expect.poll(() => running(it), { timeout: 120_000, interval: 500 }).toBe(VMS_AT_ONCE);
  const servers = await it.servers();
  expect(new Set(servers.map(({ labels }) => labels['vmwright.dev/uid'])).size).toBe(VMS_AT_ONCE);
  expect(servers).toHaveLength(VMS_AT_ONCE);

  const calls = await cloudCalls(it);
  // What was under way when the leader was killed is asked for again by the next.
  const again = 100;
  expect((calls.get('/check/{name}') ?? 0) + (calls.get('POST /servers') ?? 0)).toBeLessThanOrEqual(
    CALLS_EACH * VMS_AT_ONCE + again,
  );
  expect(calls.get('/servers/{id}') ?? 0).toBeLessThanOrEqual(again);

  expect(calls.get('POST /servers')).toBeGreaterThanOrEqual(VMS_AT_ONCE);

  const lists = calls.get('GET /servers') ?? 0;
  const before = await writes(it);
  expect(before).toBeGreaterThan(3 * VMS_AT_ONCE);
  await expect
    .poll(async () => (await cloudCalls(it)).get('GET /servers') ?? 0, { timeout: 60_000 })
    .toBeGreaterThan(lists + 5);
  expect(await writes(it)).toBe(before);
}, 300_000);

async function running({ controlPlane }: WithCloud): Promise<number> {
  const vms: readonly KubeObject[] = await controlPlane.cluster.api.list(VMS);
  return vms.filter((vm) => field(vm, 'status', 'opStatus') === 'Running').length;
}

/** How often each route was asked for, by the cloud's own count. */
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

/** How often VMs were written, by the API server's own count. */
async function writes({ controlPlane }: WithCloud): Promise<number> {
  const text = await controlPlane.cluster.api.text('/metrics');
  let sum = 0;
  for (const [, labels = '', count] of text.matchAll(/^apiserver_request_total\{([^}]*)\} (\S+)/gm))
    if (/resource="vms"/.test(labels) && /verb="(POST|PUT|PATCH|APPLY|DELETE)"/.test(labels))
      sum += Number(count);
  return sum;
}
