import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { consoleCommands } from './console.ts';
import { anchorsIn, headingsIn, linksIn } from './links.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

function filesIn(folder: string, ending: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !/(^|\/)(node_modules|dist)\//.test(name))
    .map((name) => join(folder, name));
}

const PAGES = ['README.md', 'CONTRIBUTING.md', ...filesIn('docs', '.md')];
const KINDS = ['vm', 'vmgroup', 'virtualmachine', 'vmdiskimage', 'gpuinfo'];

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

test('linksIn returns relative links and ignores URLs and code', () => {
  const page =
    'a [b](c.md) ![d](e.svg)\n[f](#g) `[h](i)` [j](https://k)\n[`l`](m.md#n)\n```md\n[o](p.md)\n```\n';
  expect(linksIn(page)).toEqual([
    { path: 'c.md', anchor: undefined },
    { path: 'e.svg', anchor: undefined },
    { path: '', anchor: 'g' },
    { path: 'm.md', anchor: 'n' },
  ]);
});

test('anchorsIn derives anchors from headings as GitHub does', () => {
  const page = '# A page\n## Names: `cvm`, not `vm`\n## Twice\n## Twice\n```sh\n# no heading\n```\n';
  expect([...anchorsIn(page)]).toEqual(['a-page', 'names-cvm-not-vm', 'twice', 'twice-1']);
});

describe('every relative link and anchor exists', () => {
  test.each(PAGES)('%s', (page) => {
    const broken = linksIn(read(page)).filter(({ path, anchor }) => {
      const target = path === '' ? page : normalize(join(dirname(page), decodeURIComponent(path)));
      if (!existsSync(join(ROOT, target))) return true;
      if (anchor === undefined) return false;
      return statSync(join(ROOT, target)).isDirectory() || !anchorsIn(read(target)).has(anchor);
    });
    expect(broken).toEqual([]);
  });
});

test('every page is reachable from the README', () => {
  const reached = new Set<string>();
  const pending = ['README.md'];
  for (let page = pending.pop(); page !== undefined; page = pending.pop()) {
    if (reached.has(page)) continue;
    reached.add(page);
    for (const { path } of linksIn(read(page)))
      if (path.endsWith('.md')) pending.push(normalize(join(dirname(page), path)));
  }
  expect(PAGES.filter((page) => !reached.has(page))).toEqual([]);
});

test('every page with console commands has a test that runs these commands', () => {
  const files = ['packages', 'tools'].flatMap((folder) => filesIn(folder, '.test.ts'));
  // Includes `make newcomer`, which runs the commands of docs/tour.md. CI runs it after the tests.
  const tests = [...files, 'tools/newcomer/main.ts'].map(read);
  const pages = PAGES.filter((page) => page !== 'CONTRIBUTING.md' && consoleCommands(read(page)).length > 0);
  const isRun = (page: string) => {
    const name = page.replace(/^docs\//, '').replace(/\.md$/, '');
    return tests.some((text) => new RegExp(`['"\`/]${name}(\\.md)?['"\`]`).test(text));
  };
  expect(pages.length).toBeGreaterThan(8);
  expect(pages.filter((page) => !isRun(page))).toEqual([]);
});

describe('the page of each kind has the same sections', () => {
  test.each(KINDS)('%s', (kind) => {
    expect(headingsIn(read(`docs/${kind}.md`), 2)).toEqual(
      expect.arrayContaining([
        ...['Quick start', 'Spec', 'Status', 'Conditions', 'Annotations', 'Events'],
        ...['Metrics', 'Guarantees', 'Configuration', 'Troubleshooting'],
      ]),
    );
  });
});
