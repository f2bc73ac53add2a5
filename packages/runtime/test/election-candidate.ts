import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { messageOf, nodeWorld } from '@vmwright/core';
import { LeaderElection } from '../src/election/leader-election.ts';
import { connect } from './connect.ts';

/*
 * Process that takes part in a leader election and acts every few milliseconds while it is the leader. SIGTERM stops
 * it. It prints one line per event. `<ns>` is the machine's monotonic clock in nanoseconds, which all processes share:
 * `<ns> <name> act|follows <identity>|leading|standing|ended: <reason>|stopped|failed <reason>`
 */

const { values } = parseArgs({
  options: {
    kubeconfig: { type: 'string', default: '' },
    namespace: { type: 'string', default: '' },
    lease: { type: 'string', default: '' },
    name: { type: 'string', default: '' },
    times: { type: 'string', default: '15000/10000/2000' },
  },
});
const { kubeconfig, namespace, lease, name, times } = values;
const [leaseMs = 0, renewMs = 0, retryMs = 0] = times.split('/').map(Number);
const ACT_EVERY_MS = 3;

function print(event: string, at = process.hrtime.bigint()): void {
  writeSync(1, `${at} ${name} ${event}\n`);
}

const stop = new AbortController();
process.once('SIGTERM', () => stop.abort(new Error('SIGTERM')));

await using client = await connect(kubeconfig);
const election = new LeaderElection({
  world: nodeWorld,
  client,
  lease: { namespace, name: lease },
  identity: name,
  leaseMs,
  renewMs,
  retryMs,
  observer: {
    leading: (leading) => print(leading ? 'leading' : 'standing'),
    holder: (identity) => print(`follows ${identity ?? '(none)'}`),
    failed: (error) => print(`failed ${messageOf(error)}`),
  },
});

await election.run(stop.signal, async (leading) => {
  await new Promise<void>((resolve) => {
    const acting = setInterval(() => {
      // Take the time before the check: a process that is suspended in between is no longer leader and prints nothing.
      const at = process.hrtime.bigint();
      if (election.isLeading()) print('act', at);
    }, ACT_EVERY_MS);
    leading.addEventListener('abort', () => {
      clearInterval(acting);
      print(`ended: ${messageOf(leading.reason)}`);
      resolve();
    });
  });
});
print('stopped');
