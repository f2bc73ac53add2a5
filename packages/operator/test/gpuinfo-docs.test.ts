import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { page, runCommands } from './doc-commands.ts';
import { install, PATHS } from './with-gpus.ts';

test('the commands of docs/gpuinfo.md print the documented output, with the documented calendar', async () => {
  const [, calendar = ''] = /^```yaml\n(# --gpu-calendar=.*?)^```$/ms.exec(page('gpuinfo.md')) ?? [];
  const folder = await mkdtemp(join(tmpdir(), 'calendar-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  // The windows for `gpu-*` get a pattern that matches no node of this test. So only the window "Sunday night" applies.
  await writeFile(join(folder, 'calendar.yaml'), calendar.replace('"gpu-*"', '"other-*"'));
  await using env = await install({ args: [`--gpu-calendar=${join(folder, 'calendar.yaml')}`] });
  await env.node('gpu-a', 4);
  await env.node('gpu-b', 1);
  await env.node('cpu-a');
  // Waits until the operator knows all nodes. Otherwise, its answers could differ from the documented output.
  for (const name of ['gpu-a', 'gpu-b']) await env.suitable(name);
  await env.info('probe', { gpuRequired: false, nodeSelector: { 'kubernetes.io/hostname': 'cpu-a' } });
  await env.reserved('probe', 'cpu-a');
  await env.remove(`${PATHS.infos}/probe`);
  expect(await runCommands(page('gpuinfo.md'), env.kubectl)).toBe(16);
  expect(await env.metrics(env.operator)).toMatch(/^vmwright_gpu_calendar_valid 1$/m);
}, 180_000);
