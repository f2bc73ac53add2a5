import { expect, test } from 'vitest';
import { ReportedError } from './errors.ts';
import { instanceUuid, knownOwnershipOf } from './ownership.ts';

const LABELS = { 'vmwright.uid': 'u-1', 'vmwright.slot': '3' };

function ownershipWith(uuid: string | undefined, labels: Readonly<Record<string, string>> = LABELS) {
  const extraConfig = Object.entries(labels).map(
    ([key, value]) => ({ _type: 'OptionValue', key, value }) as const,
  );
  const properties = {
    'config.extraConfig': extraConfig,
    ...(uuid !== undefined && { 'config.instanceUuid': uuid }),
  };
  return knownOwnershipOf({ ref: { type: 'VirtualMachine', value: 'vm-7' }, properties });
}

test('a machine belongs to a group if its instance UUID matches its ownership labels', () => {
  expect(ownershipWith(instanceUuid('u-1', 3))).toMatchObject({ uid: 'u-1', slot: 3 });
  expect(ownershipWith(instanceUuid('u-1', 4))).toBe(undefined); // another UUID: a copy of the machine
  expect(ownershipWith(instanceUuid('u-1', 3), {})).toBe(undefined); // no labels: an orphaned machine
});

test('a machine whose configuration is unknown is not treated as orphaned', () => {
  expect(() => ownershipWith(undefined, {})).toThrow(ReportedError);
});
