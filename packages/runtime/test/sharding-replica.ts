import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Logger, messageOf, nodeWorld, wait } from '@vmwright/core';
import { kubeconfigAccess } from '../src/access/kubeconfig.ts';
import { requeueAfter } from '../src/controller/result.ts';
import { Manager } from '../src/manager/manager.ts';
import { ConfigMap } from './kinds.ts';

/*
 * Process with a manager. The namespaces of the ConfigMaps are divided among several such processes. Each process
 * reconciles its objects periodically. A reconcile makes two writes with a pause between them. SIGTERM stops the
 * process. It prints one line per event. `<ns>` is the machine's monotonic clock in nanoseconds, which all processes
 * share:
 * `<ns> <name> write <key> <reconcile>|owns <owned>/<shards>/<members>|stopped|failed <reason>`
 */

const { values } = parseArgs({
  options: {
    kubeconfig: { type: 'string', default: '' },
    namespace: { type: 'string', default: '' },
    run: { type: 'string', default: '' },
    name: { type: 'string', default: '' },
    times: { type: 'string', default: '15000/10000/2000' },
  },
});
const { kubeconfig, namespace, run, name, times } = values;
const [leaseMs = 0, renewMs = 0, retryMs = 0] = times.split('/').map(Number);
const PAUSE_MS = 60;
const INTERVAL_MS = 600;

function print(event: string, at = process.hrtime.bigint()): void {
  writeSync(1, `${at} ${name} ${event}\n`);
}

const log: Logger = {
  debug: () => undefined,
  info: (fields) => {
    if (typeof fields === 'object' && 'owned' in fields)
      print(`owns ${fields.owned}/${fields.shards}/${fields.members}`);
  },
  warn: (fields, message) => print(`failed ${JSON.stringify(fields)} ${message}`),
  error: (fields, message) => print(`failed ${JSON.stringify(fields)} ${message}`),
  audit: () => undefined,
  child: () => log,
};

const stop = new AbortController();
process.once('SIGTERM', () => stop.abort(new Error('SIGTERM')));

const manager = new Manager({
  world: nodeWorld,
  access: await kubeconfigAccess({ world: nodeWorld, path: kubeconfig }),
  name: 'sharding-test',
  log,
  sharding: { name: run, namespace, identity: name, leaseMs, renewMs, retryMs },
});
manager.caches.get(ConfigMap, { labelSelector: `sharding-test=${run}` });
let reconciles = 0;
manager.control({
  for: ConfigMap,
  concurrency: 32,
  reconcile: async ({ metadata, data }, { client, signal, key }) => {
    const id = ++reconciles;
    for (const step of ['first', 'second']) {
      // Takes the time before the write. If the process is suspended between the two and loses its shards, the fence
      // stops the write, and no line is printed.
      const at = process.hrtime.bigint();
      await client.mergePatch(ConfigMap, metadata, {
        data: { seen: data?.want ?? '', by: name, step, id: String(id) },
      });
      print(`write ${key} ${id}`, at);
      if (step === 'first') await wait(nodeWorld, PAUSE_MS, signal);
    }
    return requeueAfter(INTERVAL_MS);
  },
});

try {
  await manager.run(stop.signal);
  print('stopped');
} catch (error) {
  print(`failed ${messageOf(error)}`);
  process.exitCode = 1;
}
