import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@vmwright/testbed';
import { expect, onTestFinished, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A checkout with our Makefile and an `npm` that installs nothing but what `script` does. */
async function checkout(script: string): Promise<string> {
  const folder = await temporaryFolder('lock');
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const file of ['Makefile', 'package.json', 'package-lock.json'])
    copyFileSync(join(root, file), join(folder, file));
  mkdirSync(join(folder, 'bin'));
  const lines = ['#!/bin/sh', 'mkdir -p node_modules/.bin', 'touch node_modules/.package-lock.json', script];
  writeFileSync(join(folder, 'bin', 'npm'), lines.join('\n'), { mode: 0o755 });
  return folder;
}

function make(folder: string, target: string): { readonly status: number | null; readonly said: string } {
  const { MAKEFLAGS, MAKELEVEL, ...env } = process.env; // otherwise it acts as a part of `make test`
  const { status, stdout, stderr } = spawnSync('make', [target], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...env, PATH: `${join(folder, 'bin')}:${env.PATH}` },
  });
  return { status, said: stdout + stderr };
}

test('npm that skips the Node package after a failed verification ends make with a sentence, every time', async () => {
  const folder = await checkout('exit 0');
  for (const attempt of ['first', 'second']) {
    const { status, said } = make(folder, 'node_modules/.package-lock.json');
    expect(said, attempt).toMatch(/^Node for \w+ \w+ was not installed: .* could not .* verify its hash/m);
    expect(status, attempt).toBe(2);
  }
});

test('the first line appears before npm has done anything', async () => {
  const folder = await checkout('exit 1');
  const { said } = make(folder, 'up');
  expect(said).toMatch(/^Installing packages with npm/);
});

test('npm that installs Node ends with success', async () => {
  const folder = await checkout('ln -s "$(command -v env)" node_modules/.bin/node');
  expect(make(folder, 'node_modules/.package-lock.json').status).toBe(0);
});
