import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@vmwright/testbed';
import { expect, onTestFinished, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Creates a folder with our Makefile and a fake `npm` that runs `script`. */
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

function make(folder: string, target: string): { readonly status: number | null; readonly output: string } {
  const { MAKEFLAGS, MAKELEVEL, ...env } = process.env; // with these variables, make would act as a sub-make of `make test`
  const { status, stdout, stderr } = spawnSync('make', [target], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...env, PATH: `${join(folder, 'bin')}:${env.PATH}` },
  });
  return { status, output: stdout + stderr };
}

test('if npm does not install Node, every run of make fails and prints the reason', async () => {
  const folder = await checkout('exit 0');
  for (const attempt of ['first', 'second']) {
    const { status, output } = make(folder, 'node_modules/.package-lock.json');
    expect(output, attempt).toMatch(/^Node for \w+ \w+ was not installed: .* could not .* verify its hash/m);
    expect(status, attempt).toBe(2);
  }
});

test('make prints a line before it runs npm', async () => {
  const folder = await checkout('exit 1');
  const { output } = make(folder, 'up');
  expect(output).toMatch(/^Installing packages with npm/);
});

test('make succeeds if npm installs Node', async () => {
  const folder = await checkout('ln -s "$(command -v env)" node_modules/.bin/node');
  expect(make(folder, 'node_modules/.package-lock.json').status).toBe(0);
});
