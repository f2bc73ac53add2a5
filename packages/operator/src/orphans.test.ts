import { expect, test } from 'vitest';
import { type OrphanRow, orphanTable } from './orphans.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');

const row: OrphanRow = {
  kind: 'VM',
  id: 's-1',
  what: "server 'web'",
  namespace: 'default',
  name: 'web',
  uid: 'u-1',
  createdAt: new Date(NOW - 90_000),
};

test('the table lists the oldest orphan first and orphans of unknown age last', () => {
  const older = { ...row, id: 's-2', createdAt: new Date(NOW - 3 * 86_400_000) };
  const folder = {
    ...row,
    kind: 'VmGroup',
    id: 'default/group-v5',
    what: "folder 'a'",
    name: '',
    createdAt: undefined,
  };
  expect(orphanTable([{ ...row, keptBecause: 'younger than 120s' }, older, folder], NOW).split('\n')).toEqual(
    [
      'KIND      ID                 RESOURCE       OWNER         OWNER-UID   AGE   KEPT-BECAUSE',
      "VM        s-2                server 'web'   default/web   u-1         3d",
      "VM        s-1                server 'web'   default/web   u-1         90s   younger than 120s",
      "VmGroup   default/group-v5   folder 'a'     default/-     u-1         -",
    ],
  );
});

test('without orphans, a sentence is printed instead of a table', () => {
  expect(orphanTable([], NOW)).toBe('No orphans found.');
});
