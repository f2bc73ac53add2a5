import { readdirSync, rmSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../process/run-supervisor.ts';
import { Requests, type Verb } from './requests.ts';

async function startServing(handle: (verb: Verb, part: string) => Promise<void>) {
  const folder = await temporaryFolder('requests');
  const stop = new AbortController();
  const requests = new Requests(folder);
  const served = requests.serve(handle, stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await served;
    rmSync(folder, { recursive: true });
  });
  return { requests, folder };
}

test('send resolves after the request is handled and leaves no files', async () => {
  const done: string[] = [];
  const { requests, folder } = await startServing(async (verb, part) => void done.push(`${verb} ${part}`));
  await requests.send('restart', 'operator');
  await requests.send('stop', 'kube-apiserver');
  expect(done).toEqual(['restart operator', 'stop kube-apiserver']);
  expect(readdirSync(folder)).toEqual([]);
});

test('a failed request rejects with the reason and the next request succeeds', async () => {
  let failures = 1;
  const { requests, folder } = await startServing(async () => {
    if (failures-- > 0) throw new Error('operator is not ready');
  });
  await expect(requests.send('restart', 'operator')).rejects.toThrow('operator is not ready');
  await requests.send('restart', 'operator');
  expect(readdirSync(folder)).toEqual([]);
});

test('requests for different parts are handled concurrently', async () => {
  const first = Promise.withResolvers<void>();
  const { requests } = await startServing((_, part) =>
    part === 'etcd' ? first.promise : Promise.resolve(first.resolve()),
  );
  await Promise.all([requests.send('restart', 'etcd'), requests.send('restart', 'cloud')]);
});
