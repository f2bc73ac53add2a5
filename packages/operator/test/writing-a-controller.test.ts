import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const page = readFileSync(`${ROOT}docs/internals/writing-a-controller.md`, 'utf8');

test('code quoted in docs/internals/writing-a-controller.md matches the source', () => {
  const quotes = [...page.matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)```/g)];
  expect(quotes).toHaveLength(3);
  for (const [, file = '', lines = ''] of quotes)
    expect(readFileSync(`${ROOT}${file}`, 'utf8')).toContain(lines);
});

test('files, folders and pages named in docs/internals/writing-a-controller.md exist', () => {
  const files = [...page.matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(
    ([, file]) => `packages/operator/${file}`,
  );
  const folders = [...page.matchAll(/`(packages\/[\w/-]+)`/g)].map(([, folder]) => String(folder));
  const pages = [...page.matchAll(/\]\(((?:\.\.\/)?[\w-]+\.md)\)/g)].map(
    ([, name]) => `docs/internals/${name}`,
  );
  expect([...files, ...folders, ...pages].length).toBeGreaterThan(12);
  for (const path of [...files, ...folders, ...pages]) expect(existsSync(`${ROOT}${path}`), path).toBe(true);
});

test('files named in docs/internals/vmgroup-topics.md exist', () => {
  const topics = readFileSync(`${ROOT}docs/internals/vmgroup-topics.md`, 'utf8');
  const files = [...topics.matchAll(/`((?:operator|runtime|vsphere)\/src\/[\w./-]+)`/g)];
  expect(files.length).toBeGreaterThan(12);
  for (const [, file] of files) expect(existsSync(`${ROOT}packages/${file}`), file).toBe(true);
});
