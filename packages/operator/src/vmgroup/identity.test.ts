import { expect, test } from 'vitest';
import { provisionalFolderName, provisionalOwnerFrom } from './identity.ts';

const owner = { cluster: 'production', namespace: 'default', uid: '5f0c2c1e-7f4e-4a8e-9d0e-000000000001' };
const name = provisionalFolderName(owner);

test('the provisional name of a folder identifies its owner and has at most 80 characters', () => {
  expect(name.length).toBeLessThanOrEqual(80);
  const namespaces = ['other', 'default'];
  expect(provisionalOwnerFrom(name, { cluster: 'production', namespaces })).toEqual({
    ...owner,
    isOurs: true,
  });
});

test('an operator that watches all namespaces gets no namespace from a provisional name', () => {
  expect(provisionalOwnerFrom(name, { cluster: 'production' })).toEqual({
    ...owner,
    namespace: '',
    isOurs: true,
  });
});

test('an owner is derived only from a provisional name of the same cluster and a watched namespace', () => {
  expect(provisionalOwnerFrom(name, { cluster: 'staging' })).toBeUndefined();
  expect(provisionalOwnerFrom(name, { cluster: 'production', namespaces: ['other'] })).toBeUndefined();
  for (const other of ['default-web', 'vmwright', `vmwright-${owner.uid}`])
    expect(provisionalOwnerFrom(other, { cluster: 'production' })).toBeUndefined();
});
