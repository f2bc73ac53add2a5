import { expect, test } from 'vitest';
import { isMachineTakenOver } from './vcenter-resources.ts';

const FOLDER = { type: 'Folder', value: 'group-1' } as const;
const ownership = {
  cluster: 'production',
  uid: 'u-1',
  namespace: 'default',
  name: 'web',
  slot: 0,
  template: 'small',
  templateId: 'vm-1',
};
const names = new Map([
  ['group-1', 'default-web'],
  ['group-2', 'archive'],
]);

test('a machine in the folder of its group does not count as taken over', () => {
  expect(isMachineTakenOver({ ownership, properties: { parent: FOLDER } }, names)).toBe(false);
});

test('a machine counts as taken over if a user moved it or turned it into a template', () => {
  const elsewhere = { ...FOLDER, value: 'group-2' };
  expect(isMachineTakenOver({ ownership, properties: { parent: elsewhere } }, names)).toBe(true);
  expect(
    isMachineTakenOver({ ownership, properties: { parent: FOLDER, 'config.template': true } }, names),
  ).toBe(true);
});

test('a machine counts as taken over if its folder or the name of its folder is unknown', () => {
  expect(isMachineTakenOver({ ownership, properties: {} }, names)).toBe(true);
  expect(isMachineTakenOver({ ownership, properties: { parent: FOLDER } }, new Map())).toBe(true);
});
