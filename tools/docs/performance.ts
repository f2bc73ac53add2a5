/**
 * Writes the tables of docs/performance.md from the results in bench/results. Part of `make generate`; with `--check`,
 * fails if the page is out of date.
 */
import { existsSync, readFileSync } from 'node:fs';
import { cells, type Judged } from '../../bench/bar.ts';
import { update } from '../generated/update.ts';
import { withSection } from './page.ts';
import { tableOf } from './table.ts';

const PAGE = 'docs/performance.md';

interface Results {
  readonly machine: string;
  readonly versions: string;
  readonly rows: readonly (Judged & { readonly date: string })[];
}

function section(name: string): string {
  const file = `bench/results/${name}.json`;
  if (!existsSync(file)) return `No results are stored yet: run \`make bench ONLY=${name}\`.`;
  const { machine, versions, rows }: Results = JSON.parse(readFileSync(file, 'utf8'));
  const head = ['measurement', 'vmwright', 'comparator', 'ratio', 'target', 'result', 'date'];
  const body = rows.map((row) => [...cells(row), row.date.slice(0, 10)]);
  return [
    `![Plot of the results](../bench/results/${name}.svg)`,
    `${machine}; ${versions}. Command: \`make bench ONLY=${name}\`.`,
    tableOf([head, ...body]),
  ].join('\n\n');
}

let page = readFileSync(PAGE, 'utf8');
for (const [, name = ''] of page.matchAll(/<!-- generated: (\w+) -->/g))
  page = withSection(page, name, section(name));
update(PAGE, page);
