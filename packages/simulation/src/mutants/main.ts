/**
 * `make mutants`: for each mutant, searches for a seed that violates an invariant. Then runs the variants of the sample
 * controller. Writes docs/internals/mutants.md, and seeds.json for the test.
 *
 * Environment variables:
 * - `SEEDS`: maximum number of seeds per mutant.
 * - `WORKERS`: number of parallel searches.
 * - `ONLY`: limits the search to mutants with this text in their names. The variants are then not run, and no file is
 *   written.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { MUTANTS } from './all.ts';
import { ROOT } from './install.ts';
import { mutate } from './mutant.ts';
import { runSamples } from './samples.ts';
import { search } from './search.ts';
import { lineOf, page, type Row } from './table.ts';

const { ONLY = '', SEEDS = '3000', WORKERS = String(availableParallelism()) } = process.env;
const maxSeeds = Number(SEEDS);
const workers = Number(WORKERS);

// Fails before the long search if a mutant no longer matches its file.
for (const mutant of MUTANTS) mutate(readFileSync(new URL(mutant.file, ROOT), 'utf8'), mutant);

const rows: Row[] = [];
const pending = MUTANTS.filter(({ name }) => name.includes(ONLY));
const worker = async () => {
  for (let mutant = pending.shift(); mutant !== undefined; mutant = pending.shift()) {
    const row = { mutant, result: await search(mutant, mutant.scenario, `1-${maxSeeds}`) };
    rows.push(row);
    process.stdout.write(`${lineOf(row)}\n`);
  }
};
await Promise.all(Array.from({ length: workers }, worker));
rows.sort((a, b) => MUTANTS.indexOf(a.mutant) - MUTANTS.indexOf(b.mutant));

// Writes the files only after a search for all mutants, because the files describe all of them.
if (ONLY === '') {
  const seeds = Object.fromEntries(rows.map(({ mutant, result }) => [mutant.name, result.found?.seed]));
  writeFileSync(new URL('seeds.json', import.meta.url), `${JSON.stringify(seeds, undefined, 2)}\n`);
  const samples = await runSamples(maxSeeds, workers);
  writeFileSync(new URL('docs/internals/mutants.md', ROOT), page({ rows, samples, maxSeeds }));
}
if (rows.length === 0) process.stderr.write(`no mutant has a name that contains "${ONLY}"\n`);
if (rows.length === 0 || rows.some(({ result }) => result.found === undefined)) process.exitCode = 1;
