/** `make bench`: every benchmark, or the one named, each against its bar; also written to `bench/results/latest.json`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { type Judged, judge, line, type Row } from './bar.ts';
import { runtime } from './runtime/runtime.ts';
import { testbed } from './testbed.ts';

const benchmarks: Readonly<Record<string, () => Promise<Row[]>>> = { testbed, runtime };

const [only] = process.argv.slice(2);
if (only !== undefined && benchmarks[only] === undefined) {
  console.error(`no benchmark is called ${only}; there are: ${Object.keys(benchmarks).join(', ')}`);
  process.exit(1);
}

const judged: Judged[] = [];
console.log(`${'name'.padEnd(40)}      ours    theirs     ratio       bar`);
for (const [name, measure] of Object.entries(benchmarks)) {
  if (only !== undefined && only !== name) continue;
  for (const row of await measure()) {
    const result = judge(row);
    judged.push(result);
    console.log(line(result));
  }
}

const results = new URL('results/', import.meta.url);
mkdirSync(results, { recursive: true });
const machine = { cpu: cpus()[0]?.model, cores: cpus().length, memoryGb: Math.round(totalmem() / 1e9) };
const report = { date: new Date().toISOString(), node: process.version, machine, rows: judged };
writeFileSync(new URL('latest.json', results), `${JSON.stringify(report, null, 2)}\n`);
if (judged.some(({ holds }) => !holds)) process.exitCode = 1;
