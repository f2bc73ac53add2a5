import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { ApiKeys } from './api-keys.ts';

const first = 'first-key-0123456789';
const second = 'second-key-0123456789';

async function fileWith(text: string): Promise<string> {
  const file = join(await temporaryFolder('keys'), 'keys');
  writeFileSync(file, text);
  return file;
}

test('keys are read from a file with comments and from the environment', async () => {
  const file = await fileWith(`# for the operator\n${first} # since May\n\nfourth#key#0123456789\n`);
  const keys = new ApiKeys({ file, text: ` ${second}, third-key-0123456789 ` });
  for (const key of [first, second, 'third-key-0123456789', 'fourth#key#0123456789'])
    expect(keys.accept(`Bearer ${key}`)).toBe(true);
});

test('only a complete key sent as a bearer token is accepted', async () => {
  const keys = new ApiKeys({ file: undefined, text: first });
  expect(keys.accept(`bearer   ${first} `)).toBe(true);
  for (const wrong of [
    undefined,
    '',
    first,
    'Bearer',
    'Bearer ',
    `Basic ${first}`,
    `Bearer ${first.slice(0, -1)}`,
    `Bearer ${first}0`,
    `Bearer ${first.toUpperCase()}`,
    `Bearer ${first} ${first}`,
    `Bearer ${first},${second}`,
  ])
    expect(keys.accept(wrong), String(wrong)).toBe(false);
});

test('reload replaces the keys, and keeps the previous keys if the file is invalid', async () => {
  const file = await fileWith(first);
  const keys = new ApiKeys({ file, text: undefined });
  writeFileSync(file, second);
  keys.reload();
  expect([keys.accept(`Bearer ${first}`), keys.accept(`Bearer ${second}`)]).toEqual([false, true]);
  writeFileSync(file, '');
  expect(() => keys.reload()).toThrow('no API keys');
  expect(keys.accept(`Bearer ${second}`)).toBe(true);
});

describe('constructor errors', () => {
  test('the constructor throws if there are no keys', async () => {
    expect(() => new ApiKeys({ file: undefined, text: undefined })).toThrow(
      /^no API keys: pass a file with one key per line to --keys, or set CLOUD_API_KEYS$/,
    );
    const file = await fileWith('# none\n');
    expect(() => new ApiKeys({ file, text: '' })).toThrow(`no API keys: ${file} contains none; pass a file`);
  });

  test('the constructor rejects a key that is too short or has invalid characters, without quoting it', async () => {
    const file = await fileWith(`${first}\nshort\n`);
    expect(() => new ApiKeys({ file, text: undefined })).toThrow(
      `${file}:2: a key must have at least 16 characters; this one has 5`,
    );
    expect(() => new ApiKeys({ file: undefined, text: 'schlüssel-0123456789' })).toThrow(
      /^CLOUD_API_KEYS: a key must consist of printable ASCII characters without spaces$/,
    );
  });

  test('the constructor throws if the file does not exist', () => {
    expect(() => new ApiKeys({ file: '/nowhere', text: undefined })).toThrow(
      "cannot read the API keys: ENOENT: no such file or directory, open '/nowhere'",
    );
  });
});
