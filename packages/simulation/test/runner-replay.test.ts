import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { runSeed, runTape } from '@vmwright/simulation';
import { describe, expect, test } from 'vitest';
import { scenarios } from '../src/runner/registry.ts';

const FIRST = 1;
const LAST = 10;
const program = new URL('runner-hashes.ts', import.meta.url);

async function inProcess(): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    fileURLToPath(program),
    String(FIRST),
    String(LAST),
  ]);
  return JSON.parse(stdout);
}

async function inWorker(): Promise<unknown> {
  const [hashes] = await once(new Worker(program, { workerData: [FIRST, LAST], execArgv: [] }), 'message');
  return hashes;
}

describe('replay', () => {
  test('a seed gives the same history in other processes, in a worker thread and when its recorded choices are replayed', {
    timeout: 300_000,
  }, async () => {
    const hashes: Record<string, string> = {};
    for (const scenario of scenarios)
      for (let seed = FIRST; seed <= LAST; seed++) {
        const name = `${scenario.name} ${seed}`;
        const { hash, tape, violations } = await runSeed(scenario, seed, { tape: true });
        expect(violations, name).toEqual([]);
        hashes[name] = hash;
        expect((await runSeed(scenario, seed, { story: true })).hash, name).toBe(hash);
        expect((await runTape(scenario, tape)).hash, `the tape of ${name}`).toBe(hash);
      }
    expect(new Set(Object.values(hashes)).size).toBe(scenarios.length * (LAST - FIRST + 1));
    expect(await Promise.all([inProcess(), inProcess(), inWorker()])).toEqual([hashes, hashes, hashes]);
  });
});
