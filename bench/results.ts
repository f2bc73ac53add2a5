import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { cells, HEADER, type Judged } from './bar.ts';
import { plot } from './plot.ts';

const FOLDER = new URL('results/', import.meta.url);

/** Name, folder and module of the libraries that the comparators use. */
const COMPARATORS = [
  ['controller-runtime', 'controller-runtime', 'sigs.k8s.io/controller-runtime'],
  ['govmomi', 'govmomi', 'github.com/vmware/govmomi'],
  ['gorm', 'ssvirt-controller', 'gorm.io/gorm'],
  ['pgx', 'ssvirt-controller', 'github.com/jackc/pgx/v5'],
] as const;

/** A row and the time of its measurement. */
interface Dated extends Judged {
  readonly date: string;
}

/**
 * Writes the results as JSON, as a table and as a plot. New rows replace earlier rows with the same name. Other rows
 * are kept with their date, so that a part of a benchmark can be rerun on its own.
 */
export function writeResults(name: string, rows: readonly Judged[]): void {
  const date = new Date().toISOString().slice(0, 16);
  const measured = new Map<string, Dated>(rowsIn(`${name}.json`).map((row) => [row.name, row]));
  for (const row of rows) measured.set(row.name, { ...row, date });
  const all = [...measured.values()];
  const title = `${machine()} · ${versions()}`;
  const header = [...HEADER, 'measured'];
  const table = [header, header.map(() => '---'), ...all.map((row) => [...cells(row), row.date])];
  const lines = table.map((row) => `| ${row.join(' | ')} |`);
  mkdirSync(FOLDER, { recursive: true });
  const write = (file: string, text: string) => writeFileSync(new URL(file, FOLDER), text);
  const json = `${JSON.stringify({ machine: machine(), versions: versions(), rows: all }, null, 2)}\n`;
  write(`${name}.json`, json);
  write('latest.json', json);
  write(`${name}.md`, `# make bench, ${name}\n\n${title}\n\n![plot](${name}.svg)\n\n${lines.join('\n')}\n`);
  write(`${name}.svg`, plot(title, all));
}

function rowsIn(file: string): readonly Dated[] {
  const url = new URL(file, FOLDER);
  return existsSync(url) ? JSON.parse(readFileSync(url, 'utf8')).rows : [];
}

function machine(): string {
  const [cpu] = cpus();
  return `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}`;
}

function versions(): string {
  const comparators = COMPARATORS.map(([name, folder, module]) => {
    const required = readFileSync(new URL(`${folder}/go.mod`, import.meta.url), 'utf8');
    return `${name} ${required.split(`${module} `)[1]?.split(/\s/)[0]}`;
  });
  return [`Node ${process.version}`, ...comparators].join(', ');
}
