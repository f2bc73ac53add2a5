import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Manager, noCredentials, nodeWorld, silentLogger, type World } from '@vmwright/runtime';
import { expect, onTestFinished, test } from 'vitest';
import { webhookAddress } from '../declarations.ts';
import { MAINTENANCE_ATTRIBUTE } from '../vcenter/host-maintenance.ts';
import { addGpuInfos } from './wiring.ts';

/** The real environment, but with timers that are 100 times as fast, so that files are polled often. */
const world: World = { ...nodeWorld, after: (ms, callback) => nodeWorld.after(ms / 100, callback) };

test('a standby replica reads the calendar file again when the file changes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'calendar-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const calendar = join(folder, 'calendar.yaml');
  await writeFile(calendar, 'windows: []');
  const manager = new Manager({
    world,
    name: 'test',
    log: silentLogger,
    webhooks: { address: webhookAddress('test', undefined) },
    access: { server: { origin: 'http://127.0.0.1:1' }, credentials: noCredentials, namespace: 'test' },
  });
  using _gpuInfos = await addGpuInfos(manager, {
    world,
    log: silentLogger,
    namespace: 'test',
    compute: undefined,
    settings: {
      seed: undefined,
      horizonMs: 1,
      calendar,
      vsphere: undefined,
      maintenanceAttribute: MAINTENANCE_ATTRIBUTE,
    },
  });
  const metrics = () => manager.registry.text();
  expect(metrics()).toContain('vmwright_gpu_calendar_valid 1');
  await writeFile(calendar, 'windows: [{}]');
  await expect.poll(metrics).toContain('vmwright_gpu_calendar_valid 0');
});
