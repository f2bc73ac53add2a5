import { expect, test } from 'vitest';
import { Announcements } from './announcements.ts';

const full = { reason: 'VcenterRefused', message: 'no space' };
const moved = { reason: 'Moved', message: 'x was moved' };

test('each cause is announced once, however often it is retried, and again after it went away', () => {
  const announcements = new Announcements();
  const news = (...troubles: { reason: string; message: string }[]) =>
    announcements.news('g', troubles).map(({ reason }) => reason);
  expect(news(full, full)).toEqual(['VcenterRefused']);
  expect(news(full)).toEqual([]);
  expect(news(full, moved)).toEqual(['Moved']);
  expect(news(moved)).toEqual([]);
  expect(news(full, moved)).toEqual(['VcenterRefused']);
  expect(news()).toEqual([]);
  expect(news(moved)).toEqual(['Moved']);
  expect(announcements.news('other', [moved])).toEqual([moved]);
});

test('what has to end first is not announced', () => {
  const busy = { reason: 'VcenterBusy', message: 'wait', isPassing: true };
  expect(new Announcements().news('g', [busy])).toEqual([]);
});
