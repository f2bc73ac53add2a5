/**
 * Program on our runtime that is compared with bench/controller-runtime/main.go. Both programs take the same values of
 * --job. All features of our runtime are enabled.
 */
import { parseArgs } from 'node:util';
import {
  type CacheEvent,
  ConfigMap,
  foreignKind,
  generationChanged,
  jsonLogger,
  kubeconfigAccess,
  Manager,
  nodeWorld,
  type Source,
  stopSignal,
} from '@vmwright/runtime';
import { Sample } from './sample.ts';

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '1' },
    job: { type: 'string', default: 'status' },
    phase: { type: 'string', default: 'Running' },
    namespace: { type: 'string', default: 'default' },
    objects: { type: 'string', default: '0' },
    probes: { type: 'string', default: ' ' },
  },
});
const { job, phase } = values;
const concurrency = Number(values.workers);
const objects = Number(values.objects);

const world = nodeWorld;
const manager = new Manager({
  world,
  access: await kubeconfigAccess({ world }),
  name: 'bench',
  log: jsonLogger({ clock: world, level: 'error' }),
  namespaces: [values.namespace],
  status: { port: 0, host: '127.0.0.1' },
  ...((job === 'lead' || job === 'rest') && { election: { name: 'bench' } }),
});
/** Source that prints `leads`. Sources start when this process becomes the leader. */
const printLeads: Source = async () => console.log('leads');
const doNothing = async () => undefined;

switch (job) {
  case 'bare':
    await patchAll();
    break;
  case 'status':
    setStatuses();
    break;
  case 'hold':
    manager.control({ for: ConfigMap, predicate: generationChanged, reconcile: doNothing });
    break;
  case 'lead':
    manager.control({ for: Sample, reconcile: doNothing, sources: [printLeads] });
    break;
  case 'rest':
    manager.control({ for: Sample, reconcile: doNothing, sources: [printLeads] });
    for (const kind of [
      'Node',
      'Pod',
      'Secret',
      'Service',
      'ConfigMap',
      'Endpoints',
      'Namespace',
      'Event',
      'LimitRange',
    ])
      manager.caches.get(
        foreignKind({
          group: '',
          version: 'v1',
          kind,
          plural: kind === 'Endpoints' ? 'endpoints' : `${kind.toLowerCase()}s`,
          scope: kind === 'Node' || kind === 'Namespace' ? 'Cluster' : 'Namespaced',
        }),
      );
    break;
  default:
    throw new Error(`unknown job ${job}`);
}
manager.caches.synced().then(() => console.log('synced'));
await manager.run(stopSignal());

function setStatuses(): void {
  let updated = 0;
  const observedAt = new Map<string, number>();
  manager.control({
    for: Sample,
    predicate: (event: CacheEvent<Sample>) => {
      if (!generationChanged(event)) return false;
      if (event.key.includes(values.probes)) observedAt.set(event.key, world.monotonic());
      return true;
    },
    concurrency,
    reconcile: async (sample, { setStatus, key }) => {
      const event = observedAt.get(key);
      if (event !== undefined) console.log(`waited ${world.monotonic() - event}`);
      await setStatus(sample, { phase, message: 'is running' });
      updated += 1;
      if (updated === 1) console.log('first');
      if (updated === objects) console.log('last');
    },
  });
}

/** Sends the same requests as the job `status`, without watch, cache and queue, to measure the API server's limit. */
async function patchAll(): Promise<void> {
  const { namespace } = values;
  const items = [...(await manager.client.list(Sample, { namespace })).items];
  console.log('first');
  const patch = { status: { phase, message: 'is running' } };
  const work = async () => {
    for (let next = items.pop(); next !== undefined; next = items.pop())
      await manager.client.mergePatch(Sample, next.metadata, patch, { subresource: 'status' });
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  console.log('last');
}
