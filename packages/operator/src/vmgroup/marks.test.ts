import { expect, test } from 'vitest';
import { certainMarksIn } from './marks.ts';
import { instanceUuid } from './names.ts';
import { GroupError } from './trouble.ts';

const MARKS = { 'vmwright.uid': 'u-1', 'vmwright.slot': '3' };

function marksOf(uuid: string | undefined, marks: Readonly<Record<string, string>> = MARKS) {
  const extraConfig = Object.entries(marks).map(
    ([key, value]) => ({ _type: 'OptionValue', key, value }) as const,
  );
  const properties = {
    'config.extraConfig': extraConfig,
    ...(uuid !== undefined && { 'config.instanceUuid': uuid }),
  };
  return certainMarksIn({ ref: { type: 'VirtualMachine', value: 'vm-7' }, properties });
}

test('a machine is ours by its marks and its UUID', () => {
  expect(marksOf(instanceUuid('u-1', 3))).toMatchObject({ uid: 'u-1', slot: 3 });
  expect(marksOf(instanceUuid('u-1', 4))).toBe(undefined); // a copy
  expect(marksOf(instanceUuid('u-1', 3), {})).toBe(undefined); // let go of
});

test('one of which vCenter tells nothing is not taken for let go of: it would be swept when it can be read', () => {
  expect(() => marksOf(undefined, {})).toThrow(GroupError);
});
