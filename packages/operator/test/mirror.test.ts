import { readFile } from 'node:fs/promises';
import {
  type Cluster,
  field,
  installMirror,
  type MirrorPart,
  type Postgres,
  Ssvirt,
  startMirror,
  startPostgres,
  verifyMirror,
} from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { afterAll, beforeAll, describe, expect } from 'vitest';

let postgres: Postgres;
let ssvirt: Ssvirt;

beforeAll(async () => {
  postgres = await startPostgres();
  ssvirt = await Ssvirt.install(postgres);
}, 60_000);

afterAll(async () => {
  await ssvirt[Symbol.asyncDispose]();
  await postgres[Symbol.asyncDispose]();
});

test('smoke', { timeout: 120_000 }, async ({ kubevirt, namespace }) => {
  await installMirror(kubevirt);
  const id = await ssvirt.insertVm({ namespace, name: 'plain' });
  await using mirror = await startMirror({ cluster: kubevirt, database: postgres });
  await kubevirt.apply(
    JSON.stringify({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'plain', namespace },
      spec: {
        runStrategy: 'Always',
        template: { spec: { domain: { devices: {} }, terminationGracePeriodSeconds: 0 } },
      },
    }),
  );
  const seen: (string | null)[] = [];
  for (let i = 0; i < 100; i++) {
    const status = await ssvirt.status(id);
    if (seen.at(-1) !== status) seen.push(status);
    if (status === 'POWERED_ON') break;
    await new Promise((r) => setTimeout(r, 100));
  }
  console.log(seen, await (await fetch(`${mirror.url}/health/controller`)).text());
  await kubevirt.kubectl(['-n', namespace, 'delete', 'virtualmachine', 'plain', '--wait=false']);
  for (let i = 0; i < 100; i++) {
    const status = await ssvirt.status(id);
    if (seen.at(-1) !== status) seen.push(status);
    if (status === 'DELETED') break;
    await new Promise((r) => setTimeout(r, 100));
  }
  console.log(seen);
  console.log(
    (await (await fetch(`${mirror.url}/metrics`)).text())
      .split('\n')
      .filter((l) => l.startsWith('ssvirt') && !l.includes('bucket'))
      .join('\n'),
  );
  console.log(await readFile(mirror.part.log, 'utf8'));
  console.log(await verifyMirror({ cluster: kubevirt, database: postgres }));
  console.log((await kubevirt.kubectl(['-n', namespace, 'get', 'events'])).stdout);
});
