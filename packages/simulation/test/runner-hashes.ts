/**
 * Runs the seeds `first` to `last` of each registered scenario, and prints their trace hashes as JSON. If this script
 * runs in a worker thread, it posts the hashes instead. The seeds run in descending order. The test runs them in
 * ascending order and compares the hashes, which differ if state leaks from one run into the next.
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
