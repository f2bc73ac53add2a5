import { expect, test } from 'vitest';
import { isTakenOver } from './vcenter-resources.ts';

const FOLDER = { type: 'Folder', value: 'group-1' } as const;
const marks = {
  ...{ cluster: 'production', uid: 'u-1', namespace: 'default', name: 'web', slot: 0 },
  ...{ template: 'small', templateId: 'vm-1' },
};
const names = new Map([
  ['group-1', 'default-web'],
  ['group-2', 'archive'],
]);

test('a machine in the folder of its group was not taken over', () => {
  expect(isTakenOver({ marks, properties: { parent: FOLDER } }, names)).toBe(false);
});

test('a machine that people moved or turned into a template was taken over', () => {
  const elsewhere = { ...FOLDER, value: 'group-2' };
  expect(isTakenOver({ marks, properties: { parent: elsewhere } }, names)).toBe(true);
  expect(isTakenOver({ marks, properties: { parent: FOLDER, 'config.template': true } }, names)).toBe(true);
});

test('a machine whose folder vCenter does not tell is not taken for a late one', () => {
  expect(isTakenOver({ marks, properties: {} }, names)).toBe(true);
  expect(isTakenOver({ marks, properties: { parent: FOLDER } }, new Map())).toBe(true);
});
