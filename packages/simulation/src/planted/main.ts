/**
 * `make planted`: hunts all planted bugs and writes where they are found, with what becomes of the sample controllers:
 * docs/simulation-planted.md for people, seeds.json for the test. SEEDS= at most for each, WORKERS= at a time,
 * ONLY=<part of a bug's name> for some of them, which are told and not written.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { BUGS } from './bugs.ts';
import { hunt } from './hunt.ts';
import { ROOT } from './plant.ts';
import { plantedIn } from './planted.ts';
import { runSamples } from './samples.ts';
import { lineOf, page, type Row } from './table.ts';

const { ONLY = '', SEEDS = '3000', WORKERS = String(availableParallelism()) } = process.env;
const most = Number(SEEDS);
const workers = Number(WORKERS);

// A bug that does not fit its file any more is told before all the time is spent on the others.
for (const bug of BUGS) plantedIn(readFileSync(new URL(bug.file, ROOT), 'utf8'), bug);

const rows: Row[] = [];
const left = BUGS.filter(({ name }) => name.includes(ONLY));
const worker = async () => {
  for (let bug = left.shift(); bug !== undefined; bug = left.shift()) {
    const row = { bug, hunted: await hunt(bug, bug.scenario, `1-${most}`) };
    rows.push(row);
    process.stdout.write(`${lineOf(row)}\n`);
  }
};
await Promise.all(Array.from({ length: workers }, worker));
rows.sort((a, b) => BUGS.indexOf(a.bug) - BUGS.indexOf(b.bug));

// A page about some of them would hide the others.
if (ONLY === '') {
  const seeds = Object.fromEntries(rows.map(({ bug, hunted }) => [bug.name, hunted.found?.seed]));
  writeFileSync(new URL('seeds.json', import.meta.url), `${JSON.stringify(seeds, undefined, 2)}\n`);
  const samples = await runSamples(most, workers);
  writeFileSync(new URL('docs/simulation-planted.md', ROOT), page({ rows, samples, most }));
}
if (rows.length === 0) process.stderr.write(`no planted bug is called "${ONLY}"\n`);
if (rows.length === 0 || rows.some(({ hunted }) => hunted.found === undefined)) process.exitCode = 1;
