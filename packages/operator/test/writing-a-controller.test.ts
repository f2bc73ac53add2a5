import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const page = readFileSync(`${ROOT}docs/writing-a-controller.md`, 'utf8');

test('what docs/writing-a-controller.md shows is what the code says', () => {
  const shown = [...page.matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)```/g)];
  expect(shown).toHaveLength(3);
  for (const [, file = '', lines = ''] of shown)
    expect(readFileSync(`${ROOT}${file}`, 'utf8')).toContain(lines);
});

test('what it names is there', () => {
  const files = [...page.matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(
    ([, file]) => `packages/operator/${file}`,
  );
  const folders = [...page.matchAll(/`(packages\/[\w/-]+)`/g)].map(([, folder]) => String(folder));
  const pages = [...page.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name]) => `docs/${name}`);
  expect([...files, ...folders, ...pages].length).toBeGreaterThan(12);
  for (const path of [...files, ...folders, ...pages]) expect(existsSync(`${ROOT}${path}`), path).toBe(true);
});
