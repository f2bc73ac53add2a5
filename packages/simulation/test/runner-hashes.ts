/**
 * A program, and a worker thread: tells the hashes of the seeds `first` to `last` of each registered scenario as JSON. The
 * last comes first, so that what one history leaves behind for the next would show.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { runSeed } from '@vmwright/simulation';
import { scenarios } from '../src/runner/registry.ts';

const [first = 0, last = 0]: readonly number[] = workerData ?? process.argv.slice(2).map(Number);
const hashes: Record<string, string> = {};
for (const scenario of scenarios)
  for (let seed = last; seed >= first; seed--)
    hashes[`${scenario.name} ${seed}`] = (await runSeed(scenario, seed)).hash;
if (parentPort === null) process.stdout.write(JSON.stringify(hashes));
else parentPort.postMessage(hashes);
