import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { terminalEnvironment } from './clone.ts';
import { Foreground } from './foreground.ts';
import { isRepeatable, quickStart } from './quick-start.ts';
import { Session } from './session.ts';
import { runStep } from './step.ts';

const README = fileURLToPath(new URL('../../README.md', import.meta.url));

async function folder(): Promise<string> {
  const path = await temporaryFolder('newcomer');
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

describe('quick start', () => {
  test('the quick start consists of the commands of the section with `make up`', () => {
    const page =
      '# a\n```console\n$ no\n```\n## b\n```console\n$ make up\n```\ntext\n```console\n$ ls\nx\n```\n## c\n```console\n$ no\n```\n';
    expect(quickStart(page)).toEqual([
      { line: 'make up', output: [] },
      { line: 'ls', output: ['x'] },
    ]);
  });

  test('the quick start in README.md begins with `make up` and `. .vmwright/env`, and has further commands', () => {
    const lines = quickStart(readFileSync(README, 'utf8')).map(({ line }) => line);
    expect(lines.slice(0, 2)).toEqual(['make up', '. .vmwright/env']);
    expect(lines.length).toBeGreaterThan(2);
  });

  test('the quick start is rejected if README.md does not contain `make up`', () => {
    expect(() => quickStart('# a\n')).toThrow('README.md has no section with the console command `make up`');
  });

  test('only kubectl get and psql commands are repeated until their output matches the page', () => {
    expect(['kubectl get cvm', 'psql "$URL" -c x'].map(isRepeatable)).toEqual([true, true]);
    expect(['kubectl apply -f x', 'kubectl delete cvm web', '. .vmwright/env'].map(isRepeatable)).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('shell sessions', () => {
  test('a shell session keeps variables and the current folder, and returns the output and exit code of each command', async () => {
    const cwd = await folder();
    using session = new Session({ cwd, env: { PATH: process.env.PATH } });
    expect(await session.run('export A=1; mkdir x; cd x', 10_000)).toEqual({ code: 0, lines: [] });
    expect(await session.run('echo "$A $(basename "$PWD")"; echo problem >&2; false', 10_000)).toEqual({
      code: 1,
      lines: ['1 x', 'problem'],
    });
    expect(await session.run('cat', 10_000)).toEqual({ code: 0, lines: [] });
  });

  test('if a command does not end in time, the shell session throws an error with the output of the command', async () => {
    // With a real timer, a busy machine could need longer than the timeout to start the command.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const cwd = await folder();
    using session = new Session({ cwd, env: { PATH: process.env.PATH } });
    const failing = expect(session.run('echo begun; touch begun; sleep 60', 500)).rejects.toThrow(
      /^`echo begun; touch begun; sleep 60` has not ended after 0\.5 s:\nbegun\n$/,
    );
    await expect.poll(() => existsSync(join(cwd, 'begun'))).toBe(true);
    await turn(); // the session reads the output, which was written before the file
    vi.advanceTimersByTime(500);
    await failing;
  });
});

describe('steps', () => {
  const limits = { timeoutMs: 60_000, repeatMs: 60_000 }; // no step of these tests reaches the limits

  test('a step (a documented command) passes if its output differs from the page only in ids, CPU, ages and widths', async () => {
    using session = new Session({ cwd: await folder(), env: { PATH: process.env.PATH } });
    const line = 'echo "web   web-1 Running 00000000-6b1c-4b73-9d0d-0c2f6e8f3f5e 7 1m2s"';
    const output = ['web    web-1   Running   5f0f5a4e-6b1c-4b73-9d0d-0c2f6e8f3f5e   42    9s'];
    await runStep(session, { line, output }, limits);
  });

  test('a step fails if its output differs from the page, or if the page shows no output and the command fails', async () => {
    using session = new Session({ cwd: await folder(), env: { PATH: process.env.PATH } });
    await expect(runStep(session, { line: 'echo a', output: ['b'] }, limits)).rejects.toThrow(
      '`echo a` (exit code 0) printed\na\n\nbut the page shows\nb',
    );
    await expect(runStep(session, { line: 'false', output: [] }, limits)).rejects.toThrow('exit code 1');
  });

  test('a step repeats a read-only command until its output matches the page', async () => {
    const cwd = await folder();
    const kubectl = '#!/bin/sh\nif [ -e ready ]; then echo Running; else touch ready; echo Creating; fi\n';
    writeFileSync(join(cwd, 'kubectl'), kubectl, { mode: 0o755 });
    using session = new Session({ cwd, env: { PATH: `${cwd}:${process.env.PATH}` } });
    await runStep(session, { line: 'kubectl get cvm', output: ['Running'] }, limits);
  });
});

test('Ctrl-C ends a command in the foreground and its children', async () => {
  const cwd = await folder();
  await using command = new Foreground('trap "rm ready; exit" INT; touch ready; sleep 60', {
    cwd,
    env: { PATH: process.env.PATH },
  });
  await command.created(join(cwd, 'ready'), 10_000);
  await command.interrupt();
  expect(existsSync(join(cwd, 'ready'))).toBe(false);
});

test('a command in the foreground that fails is reported with its output', async () => {
  const cwd = await folder();
  await using command = new Foreground('echo no Go; exit 1', { cwd, env: { PATH: process.env.PATH } });
  await expect(command.created(join(cwd, 'ready'), 10_000)).rejects.toThrow(/was not created:\nno Go\n$/);
});

test('the environment of a terminal has no variables of make and npm', () => {
  const env = {
    PATH: '/a/node_modules/.bin:/usr/bin',
    MAKEFLAGS: 'w',
    NODE_OPTIONS: '--x',
    HOME: '/h',
    PORTS: '1',
  };
  expect(terminalEnvironment(env)).toEqual({ PATH: '/usr/bin', HOME: '/h', PORTS: '1' });
});
