import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort, temporaryFolder } from '@vmwright/testbed';
import { expect, onTestFinished, test } from 'vitest';
import { parseSettings } from '../src/server/index.ts';
import { parseRule } from '../src/server/names/rule.ts';
import { MAIN } from './cloud-process.ts';

const docs = readFileSync(new URL('../../../docs/cloud.md', import.meta.url), 'utf8');

interface Block {
  readonly language: string;
  readonly text: string;
}

const blocks: Block[] = [...docs.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(
  ([, language = '', text = '']) => ({
    language,
    text,
  }),
);

/** Replaces ids and times, which differ on each run. */
function normalize(text: string): string {
  return text
    .trim()
    .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'UUID')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
}

test('every command of docs/cloud.md prints the documented output', async () => {
  const dir = await temporaryFolder('docs');
  const port = await freePort();
  mkdirSync(join(dir, 'bin'));
  const program = join(dir, 'bin', 'vmwright-cloud');
  // The program uses a free port. Its servers need an hour to boot, so they are `building` during the whole test.
  writeFileSync(join(dir, 'config.json'), '{"simulated":{"bootMs":{"min":3600000,"max":3600000}}}');
  writeFileSync(
    program,
    `#!/bin/sh\nexec "${process.execPath}" --disable-warning=ExperimentalWarning "${MAIN}" "$@" --listen 127.0.0.1:${port} --config config.json\n`,
  );
  chmodSync(program, 0o755);
  const commands = blocks.filter(({ language }) => language === 'sh');
  expect(commands.length).toBeGreaterThan(9);
  const marked = commands.map(
    ({ text }, at) => `${text.replaceAll('8480', String(port))}\necho; echo "=== ${at}"`,
  );
  const shell = spawn('bash', ['-eu', '-c', `${marked.join('\n')}\nkill %1; wait`], {
    cwd: dir,
    env: { ...process.env, PATH: `${join(dir, 'bin')}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  onTestFinished(() => {
    if (shell.pid !== undefined && shell.exitCode === null) process.kill(-shell.pid, 'SIGKILL');
  });
  const ended = once(shell, 'exit');
  const output = Buffer.concat(await shell.stdout.toArray()).toString();
  const outputs = output.split(/^=== \d+$/m).map(normalize);
  expect((await ended)[0], output).toBe(0);
  let compared = 0;
  for (const [at, command] of commands.entries()) {
    const documented = blocks[blocks.indexOf(command) + 1];
    if (documented?.language !== 'json') continue;
    compared += 1;
    expect(JSON.parse(outputs[at] ?? ''), command.text).toEqual(JSON.parse(normalize(documented.text)));
  }
  expect(compared).toBeGreaterThan(6);
});

test('the first command of docs/cloud.md puts vmwright-cloud and its Node.js version on the PATH', async () => {
  const [first] = blocks.filter(({ language }) => language === 'sh');
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const script = `${first?.text}\nnode --version; vmwright-cloud --help`;
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };
  const { stdout } = await promisify(execFile)('bash', ['-eu', '-c', script], { cwd: root, env });
  expect(stdout).toMatch(/^v24\.\d+\.\d+\nvmwright-cloud serve /);
});

test('the config of docs/cloud.md lists every setting with its default', async () => {
  const [config] = blocks.filter(({ language }) => language === 'jsonc');
  const file = join(await temporaryFolder('docs'), 'config.json');
  writeFileSync(file, (config?.text ?? '').replaceAll(/\/\/.*$/gm, ''));
  const given = parseSettings(['serve', '--config', file], {});
  expect(given).toEqual(parseSettings(['serve'], {}));
  const names = (value: object | undefined): string[] =>
    Object.entries(value ?? {}).flatMap(([name, each]) => [
      name,
      ...(typeof each === 'object' ? names(each) : []),
    ]);
  const { simulated, qemu } = given ?? {};
  for (const name of [...names(simulated), ...names(qemu)].filter((each) => !/^\d+$/.test(each)))
    expect(config?.text).toContain(`"${name}":`);
});

test('the prohibited names of docs/cloud.md are valid rules', () => {
  const block = blocks.find(({ text }) => text.startsWith('root '));
  const rules = (block?.text ?? '').trim().split('\n').map(parseRule);
  expect(rules.map(({ reason }) => reason)).toEqual([
    'reserved for the superuser',
    'kept for the production network',
    undefined,
  ]);
  expect(rules[2]?.pattern.test('VM-12')).toBe(true);
});
