import { expect, test } from 'vitest';
import type { ExternalChange, RemoveOptions } from './external-resources.ts';
import { removeOrphan } from './remove-orphan.ts';

const scope = { signal: new AbortController().signal, assertLeader: () => undefined };

/** Removes the orphan `a` and records the changes that are reported. */
function remove(
  removal: (options: RemoveOptions) => Promise<void>,
  { newest, isRemovable = true }: { newest: string | undefined; isRemovable?: boolean } = { newest: 'a' },
) {
  const changes: (readonly [string, ExternalChange])[] = [];
  const removed = removeOrphan<string>({
    item: 'a',
    ...scope,
    external: { refetch: async () => newest, remove: (_, options) => removal(options) },
    isRemovable: () => isRemovable,
    onChange: (item, change) => void changes.push([item, change]),
  });
  return { removed, changes };
}

test('a change is reported as soon as the backend has accepted it, before the resource is gone', async () => {
  const gone = Promise.withResolvers<void>();
  const accepted = Promise.withResolvers<void>();
  const { removed, changes } = remove(async ({ onChange }) => {
    onChange({ type: 'stop', task: 'task-1' });
    onChange({ type: 'delete', task: 'task-2' });
    accepted.resolve();
    await gone.promise;
  });
  await accepted.promise;
  expect(changes).toEqual([
    ['a', { type: 'stop', task: 'task-1' }],
    ['a', { type: 'delete', task: 'task-2' }],
  ]);
  gone.resolve();
  expect(await removed).toBe(true);
});

test('removeOrphan returns false if the resource was gone, was kept, or was only stopped', async () => {
  expect(await remove(async () => undefined).removed).toBe(false);
  expect(await remove(async ({ onChange }) => onChange({ type: 'stop' })).removed).toBe(false);
  const unexpected = () => Promise.reject(new Error('not expected'));
  expect(await remove(unexpected, { newest: undefined }).removed).toBe(false);
  expect(await remove(unexpected, { newest: 'a', isRemovable: false }).removed).toBe(false);
});
