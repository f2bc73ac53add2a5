/**
 * Prints the trace hashes of the seeds `first` to `last` of each registered scenario as JSON, or posts them when run as a
 * worker thread. Runs the seeds in descending order, so that state leaking from one run into the next changes a hash.
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
