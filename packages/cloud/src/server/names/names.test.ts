import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jsonLogger } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { ProhibitedNames } from './prohibited-names.ts';
import { parseRule } from './rule.ts';

describe('rules', () => {
  test.for([
    ['root', ['root', 'Root', 'ROOT'], ['roots', 'a-root', '']],
    ['prod-*', ['prod-', 'prod-1', 'PROD-web.eu'], ['prod', 'a-prod-1']],
    ['vm?', ['vm1', 'VMx'], ['vm', 'vm12']],
    ['a.b', ['a.b', 'A.B'], ['axb']],
    ['*', ['anything', ''], []],
    ['/^vm-?\\d+$/', ['vm1', 'vm-12'], ['VM1', 'vm1a']],
    ['/bad/i', ['bad', 'notBADatall'], ['good']],
  ] as const)('the rule %s matches %j and not %j', ([rule, hits, misses]) => {
    const { pattern } = parseRule(rule);
    // Each name is tested twice: a pattern that keeps lastIndex would not match the second time.
    for (const name of [...hits, ...hits]) expect(pattern.test(name), name).toBe(true);
    for (const name of misses) expect(pattern.test(name), name).toBe(false);
  });

  test('a rule can end with the reason why its names are prohibited', () => {
    expect(parseRule('root   the superuser’s  ')).toMatchObject({ reason: 'the superuser’s' });
    expect(parseRule('root')).toMatchObject({ reason: undefined });
  });

  test.for([
    ['a/b', '"/" is not allowed in a name or glob; write /a/b/ for a regular expression'],
    ['a[bc]', '"[" is not allowed in a name or glob; write /a[bc]/ for a regular expression'],
    ['/(/', '/(/ is not a valid regular expression: Invalid regular expression: /(/: Unterminated group'],
    ['/a/g', '/a/g is not a valid regular expression: the flags g and y are not supported'],
  ])('the rule %s is rejected: %s', ([rule = '', message]) => {
    expect(() => parseRule(rule)).toThrow(message);
  });
});

describe('prohibited-names file', () => {
  async function start(text: string) {
    const file = join(await temporaryFolder('names'), 'prohibited');
    writeFileSync(file, text);
    const lines: string[] = [];
    const { promise: reloaded, resolve } = Promise.withResolvers<void>();
    const write = (line: string) => {
      lines.push(line);
      resolve();
    };
    const log = jsonLogger({ clock: { now: () => 0 }, level: 'debug', write });
    return { file, lines, log, reloaded };
  }

  test('the prohibited-names file has one rule per line, and may have empty lines and comments', async () => {
    const { file, log } = await start('# politics\n\n  root  the superuser’s\nprod-*\n');
    using names = new ProhibitedNames(file, log);
    expect(names.match('ROOT')).toMatchObject({ reason: 'the superuser’s' });
    expect(names.match('prod-1')).toMatchObject({ reason: undefined });
    expect(names.match('free')).toBeUndefined();
  });

  test('the prohibited-names file is reloaded when another file replaces it', async () => {
    const { file, log, reloaded } = await start('a\n');
    using names = new ProhibitedNames(file, log);
    writeFileSync(`${file}.new`, 'bb\n');
    renameSync(`${file}.new`, file);
    await reloaded;
    expect([names.match('a'), names.match('bb')]).toMatchObject([undefined, { reason: undefined }]);
  });

  test('the previous rules stay in effect when a reload of the prohibited-names file finds an invalid rule', async () => {
    const { file, log, lines } = await start('a\n');
    using names = new ProhibitedNames(file, log);
    writeFileSync(file, 'b\n/(/\n');
    names.reload();
    expect([names.match('a'), names.match('b')]).toMatchObject([{ reason: undefined }, undefined]);
    expect(lines.join('')).toContain(`${file}:2: /(/ is not a valid regular expression`);
  });

  test('a missing or invalid prohibited-names file makes the start fail', async () => {
    const { file, log } = await start('a\nb c\nd/\n');
    expect(() => new ProhibitedNames(file, log)).toThrow(`${file}:3: "/" is not allowed in a name or glob`);
    expect(() => new ProhibitedNames('/nowhere', log)).toThrow(
      "cannot read the prohibited names: ENOENT: no such file or directory, open '/nowhere'",
    );
  });

  test('without a prohibited-names file no name is prohibited', async () => {
    const { log } = await start('');
    using names = new ProhibitedNames(undefined, log);
    names.reload();
    expect(names.match('root')).toBeUndefined();
  });
});
