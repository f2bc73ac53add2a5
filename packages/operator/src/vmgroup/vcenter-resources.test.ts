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

test('a machine in the folder of its group was not taken over', () => {
  expect(isMachineTakenOver({ ownership, properties: { parent: FOLDER } }, names)).toBe(false);
});

test('a machine that people moved or turned into a template was taken over', () => {
  const elsewhere = { ...FOLDER, value: 'group-2' };
  expect(isMachineTakenOver({ ownership, properties: { parent: elsewhere } }, names)).toBe(true);
  expect(
    isMachineTakenOver({ ownership, properties: { parent: FOLDER, 'config.template': true } }, names),
  ).toBe(true);
});

test('a machine without a known folder counts as taken over', () => {
  expect(isMachineTakenOver({ ownership, properties: {} }, names)).toBe(true);
  expect(isMachineTakenOver({ ownership, properties: { parent: FOLDER } }, new Map())).toBe(true);
});
