import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { cells, HEADER, type Judged } from './bar.ts';
import { plot } from './plot.ts';

const FOLDER = new URL('results/', import.meta.url);

/** As data, as a table and as a plot; the newest run's as `latest.json` too. */
export function writeResults(name: string, rows: readonly Judged[]): void {
  const about = { date: new Date().toISOString().slice(0, 16), machine: machine(), versions: versions() };
  const json = `${JSON.stringify({ ...about, rows }, null, 2)}\n`;
  const title = `${about.date} · ${about.machine} · ${about.versions}`;
  const table = [HEADER, HEADER.map(() => '---'), ...rows.map(cells)].map((row) => `| ${row.join(' | ')} |`);
  mkdirSync(FOLDER, { recursive: true });
  const write = (file: string, text: string) => writeFileSync(new URL(file, FOLDER), text);
  write('latest.json', json);
  write(`${name}.md`, `# make bench, ${name}\n\n${title}\n\n![plot](${name}.svg)\n\n${table.join('\n')}\n`);
  write(`${name}.svg`, plot(title, rows));
}

function machine(): string {
  const [cpu] = cpus();
  return `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}`;
}

function versions(): string {
  const comparators = ['sigs.k8s.io/controller-runtime', 'github.com/vmware/govmomi'].map((module) => {
    const name = module.slice(module.lastIndexOf('/') + 1);
    const required = readFileSync(new URL(`${name}/go.mod`, import.meta.url), 'utf8');
    return `${name} ${required.split(`${module} `)[1]?.split(/\s/)[0]}`;
  });
  return [`Node ${process.version}`, ...comparators].join(', ');
}
