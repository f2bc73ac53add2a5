import { apiError, type Client, type KubeObject, type Secret } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { PasswordReader } from './passwords.ts';
import type { VirtualMachine } from './resource.ts';

const MINUTE = 60_000;

const vm = (generation: number): VirtualMachine => ({
  metadata: { namespace: 'work', name: 'demo', uid: 'u-1', generation },
  spec: {
    resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
    vmDiskImageRef: { name: 'base' },
    users: [{ name: 'demo', passwordSecretRef: { name: 'secret' } }],
  },
});

/** Returns a reader of one password, and a state that sets the Secret and the time and counts the requests. */
function setup() {
  const state = { password: 'first', exists: true, requests: 0, time: 0 };
  const get = async (): Promise<Secret> => {
    state.requests++;
    if (!state.exists) throw apiError('not found', { status: 404 });
    const data = { password: Buffer.from(state.password).toString('base64') };
    return { metadata: { namespace: 'work', name: 'secret' }, data };
  };
  const reader = new PasswordReader();
  const client: Pick<Client, 'get'> = { get: get as <T extends KubeObject>() => Promise<T> };
  const read = (hasSecret: boolean, generation = 1) =>
    reader.read(vm(generation), hasSecret, {
      client,
      signal: new AbortController().signal,
      now: () => state.time,
    });
  return { state, reader, read };
}

test('the password is read at most once in five minutes if the cloud-init Secret exists', async () => {
  const { state, read } = setup();
  const first = await read(false);
  state.password = 'second';
  expect([await read(true), state.requests]).toEqual([first, 1]);
  state.time = 6 * MINUTE;
  const second = await read(true);
  expect([second, state.requests]).not.toEqual([first, 1]);
  expect(state.requests).toBe(2);
});

test('the password is read again if the spec has changed, the cloud-init Secret is missing, or the last read failed', async () => {
  const { state, reader, read } = setup();
  await read(true);
  await read(true, 2);
  await read(false, 2);
  expect(state.requests).toBe(3);
  state.exists = false;
  expect(await read(false, 2)).toMatchObject({ problem: { reason: 'PasswordSecretMissing' } });
  state.exists = true;
  expect(await read(true, 2)).toHaveProperty('hashes');
  expect(state.requests).toBe(5);
  reader.evict('u-1');
  await read(true, 2);
  expect(state.requests).toBe(6);
});
