import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jsonLogger } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { ProhibitedNames } from './prohibited-names.ts';
import { ruleIn } from './rule.ts';

describe('a rule', () => {
  test.for([
    ['root', ['root', 'Root', 'ROOT'], ['roots', 'a-root', '']],
    ['prod-*', ['prod-', 'prod-1', 'PROD-web.eu'], ['prod', 'a-prod-1']],
    ['vm?', ['vm1', 'VMx'], ['vm', 'vm12']],
    ['a.b', ['a.b', 'A.B'], ['axb']],
    ['*', ['anything', ''], []],
    ['/^vm-?\\d+$/', ['vm1', 'vm-12'], ['VM1', 'vm1a']],
    ['/bad/i', ['bad', 'notBADatall'], ['good']],
  ] as const)('%s is for %j and not for %j', ([rule, hits, misses]) => {
    const { pattern } = ruleIn(rule);
    // Twice: a pattern that keeps a place would miss the second time.
    for (const name of [...hits, ...hits]) expect(pattern.test(name), name).toBe(true);
    for (const name of misses) expect(pattern.test(name), name).toBe(false);
  });

  test('may have a reason', () => {
    expect(ruleIn('root   the superuser’s  ')).toMatchObject({ reason: 'the superuser’s' });
    expect(ruleIn('root')).toMatchObject({ reason: undefined });
  });

  test.for([
    ['a/b', 'no name has a "/" in it; write /a/b/ for a regular expression'],
    ['a[bc]', 'no name has a "[" in it; write /a[bc]/ for a regular expression'],
    ['/(/', '/(/ is no regular expression: Invalid regular expression: /(/: Unterminated group'],
    ['/a/g', '/a/g is no regular expression: the flags g and y have no meaning here'],
  ])('%s is refused: %s', ([rule = '', sentence]) => {
    expect(() => ruleIn(rule)).toThrow(sentence);
  });
});

describe('the file', () => {
  async function start(text: string) {
    const file = join(await temporaryFolder('names'), 'prohibited');
    writeFileSync(file, text);
    const lines: string[] = [];
    const { promise: reread, resolve } = Promise.withResolvers<void>();
    const write = (line: string) => {
      lines.push(line);
      resolve();
    };
    const log = jsonLogger({ clock: { now: () => 0 }, level: 'debug', write });
    return { file, lines, log, reread };
  }

  test('has a rule a line, empty ones and comments', async () => {
    const { file, log } = await start('# politics\n\n  root  the superuser’s\nprod-*\n');
    using names = new ProhibitedNames(file, log);
    expect(names.prohibition('ROOT')).toMatchObject({ reason: 'the superuser’s' });
    expect(names.prohibition('prod-1')).toMatchObject({ reason: undefined });
    expect(names.prohibition('free')).toBeUndefined();
  });

  test('is read again when it is changed, or replaced by another', async () => {
    const { file, log, reread } = await start('a\n');
    using names = new ProhibitedNames(file, log);
    writeFileSync(`${file}.new`, 'bb\n');
    renameSync(`${file}.new`, file);
    await reread;
    expect([names.prohibition('a'), names.prohibition('bb')]).toMatchObject([
      undefined,
      { reason: undefined },
    ]);
  });

  test('that makes no sense any more leaves the last rules in force', async () => {
    const { file, log, lines } = await start('a\n');
    using names = new ProhibitedNames(file, log);
    writeFileSync(file, 'b\n/(/\n');
    names.reload();
    expect([names.prohibition('a'), names.prohibition('b')]).toMatchObject([
      { reason: undefined },
      undefined,
    ]);
    expect(lines.join('')).toContain(`${file}:2: /(/ is no regular expression`);
  });

  test('that is wrong from the start, or missing, is told with its line', async () => {
    const { file, log } = await start('a\nb c\nd/\n');
    expect(() => new ProhibitedNames(file, log)).toThrow(`${file}:3: no name has a "/" in it`);
    expect(() => new ProhibitedNames('/nowhere', log)).toThrow(
      "the prohibited names cannot be read: ENOENT: no such file or directory, open '/nowhere'",
    );
  });

  test('may be none', async () => {
    const { log } = await start('');
    using names = new ProhibitedNames(undefined, log);
    names.reload();
    expect(names.prohibition('root')).toBeUndefined();
  });
});
