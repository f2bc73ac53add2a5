import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Logger, messageOf, nodeWorld, wait } from '@vmwright/core';
import { kubeconfigAccess } from '../src/access/kubeconfig.ts';
import { requeueAfter } from '../src/controller/result.ts';
import { Manager } from '../src/manager/manager.ts';
import { ConfigMap } from './kinds.ts';

/*
 * A process whose manager shares config maps with others by namespace. Each of its objects is looked at again and again;
 * a look is two writes with a pause between them. A line on its standard output for each thing that happens, with the
 * nanoseconds of the machine's monotonic clock, which all processes share:
 * `<ns> <name> act <key> <reconcile>|share <owned>/<shards>/<members>|stopped|failed <why>`. SIGTERM asks it to stop.
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
const AGAIN_MS = 600;

function say(what: string, at = process.hrtime.bigint()): void {
  writeSync(1, `${at} ${name} ${what}\n`);
}

const log: Logger = {
  debug: () => undefined,
  info: (fields) => {
    if (typeof fields === 'object' && 'owned' in fields)
      say(`share ${fields.owned}/${fields.shards}/${fields.members}`);
  },
  warn: (fields, message) => say(`failed ${JSON.stringify(fields)} ${message}`),
  error: (fields, message) => say(`failed ${JSON.stringify(fields)} ${message}`),
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
      // The time goes first: stopped between the two, the process is refused the write, and says nothing.
      const at = process.hrtime.bigint();
      await client.mergePatch(ConfigMap, metadata, {
        data: { seen: data?.want ?? '', by: name, step, id: String(id) },
      });
      say(`act ${key} ${id}`, at);
      if (step === 'first') await wait(nodeWorld, PAUSE_MS, signal);
    }
    return requeueAfter(AGAIN_MS);
  },
});

try {
  await manager.run(stop.signal);
  say('stopped');
} catch (error) {
  say(`failed ${messageOf(error)}`);
  process.exitCode = 1;
}
