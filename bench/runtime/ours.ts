/** The same two jobs as bench/controller-runtime/main.go, on our runtime with everything switched on. */
import { parseArgs } from 'node:util';
import { generationChanged, jsonLogger, kubeconfigAccess, Manager, nodeWorld } from '@vmwright/runtime';
import { ConfigMap, Sample } from './sample.ts';

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '1' },
    job: { type: 'string', default: 'status' },
    phase: { type: 'string', default: 'Running' },
  },
});

const world = nodeWorld;
const manager = new Manager({
  world,
  access: await kubeconfigAccess({ world }),
  name: 'bench',
  log: jsonLogger({ clock: world, level: 'error' }),
  status: { port: 0, host: '127.0.0.1' },
});
if (values.job === 'status') {
  manager.control({
    for: Sample,
    when: generationChanged,
    concurrency: Number(values.workers),
    reconcile: async (sample, { setStatus }) => {
      await setStatus(sample, { phase: values.phase, message: 'it runs' });
    },
  });
} else {
  manager.control({ for: ConfigMap, when: generationChanged, reconcile: async () => undefined });
}
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
const running = manager.run(stop.signal);
while (!manager.ready) await new Promise((resolve) => setTimeout(resolve, 10));
console.log('synced');
await running;
