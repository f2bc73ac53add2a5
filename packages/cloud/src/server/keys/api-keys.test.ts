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

test('keys come from a file, with comments, and from the environment', async () => {
  const file = await fileWith(`# for the operator\n${first} # since May\n\nfourth#key#0123456789\n`);
  const keys = new ApiKeys({ file, text: ` ${second}, third-key-0123456789 ` });
  for (const key of [first, second, 'third-key-0123456789', 'fourth#key#0123456789'])
    expect(keys.accept(`Bearer ${key}`)).toBe(true);
});

test('only a key as a whole, as a bearer token, opens', async () => {
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

test('a key is rotated by writing the file anew; a wrong file leaves the old keys', async () => {
  const file = await fileWith(first);
  const keys = new ApiKeys({ file, text: undefined });
  writeFileSync(file, second);
  keys.reload();
  expect([keys.accept(`Bearer ${first}`), keys.accept(`Bearer ${second}`)]).toEqual([false, true]);
  writeFileSync(file, '');
  expect(() => keys.reload()).toThrow('there are no API keys');
  expect(keys.accept(`Bearer ${second}`)).toBe(true);
});

describe('what is refused, without telling a key:', () => {
  test('no keys at all', async () => {
    expect(() => new ApiKeys({ file: undefined, text: undefined })).toThrow(
      /^there are no API keys: name a file with one a line by --keys, or set CLOUD_API_KEYS$/,
    );
    const file = await fileWith('# none\n');
    expect(() => new ApiKeys({ file, text: '' })).toThrow(
      `there are no API keys: ${file} has none; name a file`,
    );
  });

  test('keys that can be guessed, or cannot be sent', async () => {
    const file = await fileWith(`${first}\nshort\n`);
    expect(() => new ApiKeys({ file, text: undefined })).toThrow(
      `${file}:2: a key has at least 16 characters, this one 5`,
    );
    expect(() => new ApiKeys({ file: undefined, text: 'schlüssel-0123456789' })).toThrow(
      /^CLOUD_API_KEYS: a key is of printable ASCII characters without spaces$/,
    );
  });

  test('a file that is not there', () => {
    expect(() => new ApiKeys({ file: '/nowhere', text: undefined })).toThrow(
      "the API keys cannot be read: ENOENT: no such file or directory, open '/nowhere'",
    );
  });
});
