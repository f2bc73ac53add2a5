import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { messageOf, nodeWorld } from '@vmwright/core';
import { LeaderElection } from '../src/election/leader-election.ts';
import { connect } from './connect.ts';

/*
 * A process that stands for election and, while it leads, acts every few milliseconds. A line on its standard output
 * for each thing that happens, with the nanoseconds of the machine's monotonic clock, which all processes share:
 * `<ns> <name> act|follows <identity>|leading|lost|stopped|failed <why>`. SIGTERM asks it to stop.
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

function say(what: string, at = process.hrtime.bigint()): void {
  writeSync(1, `${at} ${name} ${what}\n`);
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
    leading: (is) => say(is ? 'leading' : 'standing'),
    holder: (identity) => say(`follows ${identity ?? 'nobody'}`),
    failed: (error) => say(`failed ${messageOf(error)}`),
  },
});

await election.run(stop.signal, async (leading) => {
  await new Promise<void>((resolve) => {
    const acting = setInterval(() => {
      // The time goes first: stopped between the two, the process finds that it leads no more, and says nothing.
      const at = process.hrtime.bigint();
      if (election.isLeading()) say('act', at);
    }, ACT_EVERY_MS);
    leading.addEventListener('abort', () => {
      clearInterval(acting);
      say(`ended: ${messageOf(leading.reason)}`);
      resolve();
    });
  });
});
say('stopped');
