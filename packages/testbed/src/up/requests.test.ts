import { readdirSync, rmSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../process/keeper.ts';
import { Requests, type Verb } from './requests.ts';

async function served(handle: (verb: Verb, part: string) => Promise<void>) {
  const folder = await temporaryFolder('requests');
  const stop = new AbortController();
  const requests = new Requests(folder);
  const ended = requests.serve(handle, stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await ended;
    rmSync(folder, { recursive: true });
  });
  return { requests, folder };
}

test('a request is carried out before the sender goes on, and leaves nothing', async () => {
  const done: string[] = [];
  const { requests, folder } = await served(async (verb, part) => void done.push(`${verb} ${part}`));
  await requests.send('restart', 'operator');
  await requests.send('stop', 'kube-apiserver');
  expect(done).toEqual(['restart operator', 'stop kube-apiserver']);
  expect(readdirSync(folder)).toEqual([]);
});

test('a request that fails rejects with the reason; the next one is carried out', async () => {
  let failures = 1;
  const { requests, folder } = await served(async () => {
    if (failures-- > 0) throw new Error('operator is not ready');
  });
  await expect(requests.send('restart', 'operator')).rejects.toThrow('operator is not ready');
  await requests.send('restart', 'operator');
  expect(readdirSync(folder)).toEqual([]);
});

test('requests for different parts are carried out at the same time', async () => {
  const first = Promise.withResolvers<void>();
  const { requests } = await served((_, part) =>
    part === 'etcd' ? first.promise : Promise.resolve(first.resolve()),
  );
  await Promise.all([requests.send('restart', 'etcd'), requests.send('restart', 'cloud')]);
});
