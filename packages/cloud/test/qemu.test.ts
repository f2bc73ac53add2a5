import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@vmwright/testbed';
import { expect, onTestFinished, test } from 'vitest';
import { processesOf } from '../src/server/qemu/processes.ts';
import { CloudProcess } from './cloud-process.ts';
import { bootSector, findQemu } from './qemu.ts';

const FAKE_QEMU = fileURLToPath(new URL('fake-qemu.ts', import.meta.url));

test.for(['QEMU', 'a fake QEMU'])(
  'machines of %s survive a kill of the cloud, and the restarted cloud finds them',
  async (which) => {
    const found = which === 'QEMU' ? await findQemu() : { binary: FAKE_QEMU, args: [] };
    if ('why' in found) {
      console.warn(`The real QEMU is not tested: ${found.why}`);
      return expect(found.why).not.toBe('');
    }
    const dir = await temporaryFolder('qemu');
    const image = join(dir, 'disk.img');
    writeFileSync(image, bootSector());
    const config = { observeEveryMs: 20, qemu: { ...found, dir, image, memoryMb: 64, accel: 'tcg' } };
    await using cloud = await CloudProcess.start({ args: ['--driver', 'qemu'], config });
    const { id } = await cloud.client.create({ name: 'vmsample' }, 'k');
    onTestFinished(() => {
      for (const pid of processesOf(id)) process.kill(pid, 'SIGKILL');
    });
    await cloud.audited('running', id);
    const before = processesOf(id);
    expect(before).toHaveLength(1);

    await cloud.kill();
    expect(processesOf(id)).toEqual(before);
    await cloud.start();
    expect(await cloud.client.create({ name: 'vmsample' }, 'k')).toMatchObject({ id, state: 'running' });
    const cpuUtilization = async () => (await cloud.client.status(id)).cpuUtilization;
    await expect.poll(cpuUtilization, { interval: 50, timeout: 60_000 }).toBeGreaterThan(0);
    expect(processesOf(id)).toEqual(before);
    // CPU utilization does not prove that the machine has booted, because the firmware also uses CPU time.
    await expect.poll(() => readFileSync(join(dir, id, 'console.log'), 'utf8')).toMatch(/^booted/);

    // The cloud is killed during the deletion and continues the deletion after the restart.
    await cloud.client.delete(id);
    await cloud.kill();
    await cloud.start();
    await cloud.audited('deleted', id);
    expect(processesOf(id)).toEqual([]);
    expect(existsSync(join(dir, id))).toBe(false);
  },
);

test('a server fails when its QEMU process is killed', async () => {
  const dir = await temporaryFolder('qemu');
  const config = { observeEveryMs: 20, qemu: { binary: FAKE_QEMU, dir, accel: 'tcg' } };
  await using cloud = await CloudProcess.start({ args: ['--driver', 'qemu'], config });
  const { id } = await cloud.client.create({ name: 'vmsample' }, 'k');
  await cloud.audited('running', id);
  for (const pid of processesOf(id)) process.kill(pid, 'SIGKILL');
  const { message } = await cloud.audited('failed', id);
  expect(message).toBe(`the QEMU process has exited; see the console log ${join(dir, id, 'console.log')}`);
  await cloud.client.delete(id);
  await cloud.audited('deleted', id);
});
