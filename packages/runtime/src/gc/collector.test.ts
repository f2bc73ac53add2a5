import { expect, test } from 'vitest';
import { isCollectable } from './collector.ts';
import type { Owner } from './external-resources.ts';

interface Item {
  readonly owner: Owner;
  readonly isKept?: boolean;
  readonly isHeld?: boolean;
}

const owner: Owner = { uid: 'u-1', namespace: 'default', name: 'web' };
const external = {
  ownerOf: (item: Item) => item.owner,
  outlivedOwner: ({ isKept = false }: Item) => isKept,
  isHeld: ({ isHeld = false }: Item) => isHeld,
};
const witnessed = { has: (uid: string) => uid === 'u-1' };
const nothing = { has: () => false };

test('a resource is collected only if the deletion of its owner was witnessed or is recorded on the resource', () => {
  expect(isCollectable({ owner }, external, witnessed)).toBe(true);
  expect(isCollectable({ owner, isKept: true }, external, nothing)).toBe(true);
  expect(isCollectable({ owner }, external, nothing)).toBe(false);
});

test('a resource that a user took over is not collected', () => {
  expect(isCollectable({ owner, isHeld: true }, external, witnessed)).toBe(false);
  expect(isCollectable({ owner, isKept: true, isHeld: true }, external, witnessed)).toBe(false);
});
