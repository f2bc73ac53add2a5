/** `make bench`: runs all benchmarks, or the given one, compares each row with its bar, and writes `bench/results/`. */
import { cells, HEADER, type Judged, judge, line, type Row } from './bar.ts';
import { gpuinfo } from './gpuinfo/gpuinfo.ts';
import { mirror } from './mirror/mirror.ts';
import { idle } from './operator/idle.ts';
import { writeResults } from './results.ts';
import { runtime } from './runtime/runtime.ts';
import { testbed } from './testbed.ts';
import { vsphere } from './vsphere/vsphere.ts';

const benchmarks: Readonly<Record<string, (part?: string) => AsyncIterable<Row>>> = {
  testbed,
  runtime,
  vsphere,
  mirror,
  gpuinfo,
  operator: idle,
};

const [only, part] = process.argv.slice(2);
if (only !== undefined && benchmarks[only] === undefined) {
  console.error(`unknown benchmark ${only}; use one of ${Object.keys(benchmarks).join(', ')}`);
  process.exit(1);
}

console.log(line(HEADER));
const judged: Judged[] = [];
for (const [name, measure] of Object.entries(benchmarks)) {
  if (only !== undefined && only !== name) continue;
  const measured: Judged[] = [];
  for await (const row of measure(part)) {
    const result = judge(row);
    measured.push(result);
    console.log(line(cells(result)));
  }
  writeResults(name, measured);
  judged.push(...measured);
}
if (judged.some(({ holds }) => holds === false)) process.exitCode = 1;
