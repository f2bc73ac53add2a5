import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collectingLogger, Registry } from '@vmwright/runtime';
import { expect, onTestFinished, test } from 'vitest';
import { Calendar } from './calendar.ts';
import { CalendarFile } from './calendar-file.ts';
import { parseCalendar } from './parse-calendar.ts';

const at = (text: string) => Date.parse(text);
const NOW = at('2026-11-17T12:00:00Z'); // a Tuesday
const node = (name: string, host = name, labels = {}) => ({ name, host, labels });

const ONCE = `
windows:
  - name: firmware
    start: 2026-12-01T08:00:00Z
    end: 2026-12-01T12:00:00Z
    nodes: ["gpu-*"]
`;

test('a window that occurs once is listed until its end, for matching nodes only', () => {
  const calendar = new Calendar(parseCalendar(ONCE));
  const expected = {
    startsAt: at('2026-12-01T08:00:00Z'),
    endsAt: at('2026-12-01T12:00:00Z'),
    source: "calendar 'firmware'",
  };
  expect(calendar.maintenanceOf(node('gpu-1'), NOW)).toEqual([expected]);
  expect(calendar.maintenanceOf(node('cpu-1'), NOW)).toEqual([]);
  expect(calendar.maintenanceOf(node('my-gpu-1'), NOW)).toEqual([]);
  expect(calendar.maintenanceOf(node('gpu-1'), at('2026-12-01T11:59:59Z'))).toEqual([expected]);
  expect(calendar.maintenanceOf(node('gpu-1'), at('2026-12-01T12:00:00Z'))).toEqual([]);
});

test('the first listed occurrence of a repeated window is the next one, even after the clock was set back', () => {
  const calendar = new Calendar(
    parseCalendar(`
windows:
  - name: patches
    weekdays: [Sun]
    at: "02:00"
    duration: 4h
    timeZone: Europe/Berlin
    nodes: ["*"]
`),
  );
  const first = (now: string) => calendar.maintenanceOf(node('n'), at(now))[0]?.startsAt;
  expect(first('2026-11-17T12:00:00Z')).toBe(at('2026-11-22T01:00:00Z'));
  expect(first('2026-11-22T04:59:59Z')).toBe(at('2026-11-22T01:00:00Z'));
  expect(first('2026-11-22T05:00:00Z')).toBe(at('2026-11-29T01:00:00Z'));
  expect(first('2026-11-10T12:00:00Z')).toBe(at('2026-11-15T01:00:00Z'));
});

test.each([
  ['nodes: [a, b]', node('b'), true],
  ['nodes: [a, b]', node('c'), false],
  ['nodes: ["n?"]', node('n1'), true],
  ['nodes: ["n.1"]', node('nx1'), false],
  ['hosts: ["esx-*.example.com"]', node('n', 'esx-1.example.com'), true],
  ['hosts: ["esx-*.example.com"]', node('esx-1.example.com', 'other'), false],
  ['nodeSelector: { pool: ml }', node('n', 'n', { pool: 'ml', zone: 'a' }), true],
  ['nodeSelector: { pool: ml, zone: b }', node('n', 'n', { pool: 'ml', zone: 'a' }), false],
  ['nodes: ["n*"], hosts: [esx-1]', node('n1', 'esx-1'), true],
  ['nodes: ["n*"], hosts: [esx-1]', node('n1', 'esx-2'), false],
])('a window with %s applies to the node %j: %s', (selection, given, isConcerned) => {
  const text = `windows: [{ name: w, start: 2026-12-01T08:00:00Z, end: 2026-12-01T09:00:00Z, ${selection} }]`;
  expect(new Calendar(parseCalendar(text)).maintenanceOf(given, NOW)).toHaveLength(isConcerned ? 1 : 0);
});

test('a pattern with many wildcards does not take exponential time', () => {
  const text = `windows: [{ name: w, start: 2026-12-01T08:00:00Z, end: 2026-12-01T09:00:00Z, nodes: ["${'*a'.repeat(30)}*b"] }]`;
  expect(new Calendar(parseCalendar(text)).maintenanceOf(node('a'.repeat(63)), NOW)).toEqual([]);
}, 1_000);

const once = 'start: 2026-12-01T08:00:00Z, end: 2026-12-01T09:00:00Z';
const repeated = 'at: "02:00", duration: 1h, timeZone: UTC';

test.each([
  ['windows: {}', 'windows must be a list; if nothing is planned, write "windows: []"'],
  ['windows:', /^windows must be a list/],
  ['', /^windows must be a list/],
  ['# nothing planned\n', /^windows must be a list/],
  ['window: []', 'the file has an unknown field "window"; it may have windows'],
  ['windows: []\nWindows: []', /^the file has an unknown field "Windows"/],
  ['just text', 'the file must be a map of fields'],
  ['windows: [a]', 'windows[0] must be a map of fields'],
  ['windows: [', /^the file is not YAML: .+/],
  [`windows: [{ name: w, ${once} }]`, /^windows\[0\] selects no nodes; set nodes, hosts or nodeSelector/],
  [`windows: [{ ${once}, nodes: [a] }]`, 'windows[0].name is missing; it must be a string'],
  [`windows: [{ name: w, ${once}, nodes: [] }]`, /^windows\[0\]\.nodes is \[\]; it must be a list of names/],
  [`windows: [{ name: w, ${once}, nodes: a }]`, /^windows\[0\]\.nodes is "a"; it must be a list/],
  [
    `windows: [{ name: w, ${once}, nodeSelector: { a: true } }]`,
    /nodeSelector\.a must be a string; quote the value/,
  ],
  [
    `windows: [{ name: w, ${once}, nodes: [a], at: "02:00" }]`,
    /must have either the fields start and end, or/,
  ],
  ['windows: [{ name: w, start: 2026-12-01T08:00:00Z, nodes: [a] }]', /^windows\[0\]\.end is missing/],
  [
    'windows: [{ name: w, start: 2026-12-01T08:00:00Z, end: 2026-12-01T08:00:00Z, nodes: [a] }]',
    'windows[0].end must be later than windows[0].start',
  ],
  [
    'windows: [{ name: w, start: 2026-12-01, end: 2026-12-02, nodes: [a] }]',
    /start is "2026-12-01"; it must be a time/,
  ],
  [
    `windows: [{ name: w, ${repeated}, nodes: [a], weekdays: [Sunday] }]`,
    /weekdays is \["Sunday"\]; .* Sun, Mon/,
  ],
  [`windows: [{ name: w, ${repeated}, nodes: [a], weeksOfMonth: [0] }]`, /weeksOfMonth is \[0\]; it must be/],
  [
    'windows: [{ name: w, nodes: [a], at: "25:00", duration: 1h, timeZone: UTC }]',
    /at is "25:00"; it must be a time/,
  ],
  [
    'windows: [{ name: w, nodes: [a], at: "02:00", duration: 0h, timeZone: UTC }]',
    /duration is "0h"; it must be/,
  ],
  [
    'windows: [{ name: w, nodes: [a], at: "02:00", duration: 999h, timeZone: UTC }]',
    /duration is "999h"; .* at most 744h/,
  ],
  [
    'windows: [{ name: w, nodes: [a], at: "02:00", duration: 1h }]',
    /timeZone is missing; it must be a time zone/,
  ],
  [
    'windows: [{ name: w, nodes: [a], at: "02:00", duration: 1h, timeZone: Mars }]',
    /timeZone is "Mars"; it must be/,
  ],
  [
    `windows: [{ name: w, ${once}, nodes: [a], weekday: [Sun] }]`,
    /^windows\[0\] has an unknown field "weekday"; it may have/,
  ],
])('the calendar %s is rejected', (text, message) => {
  expect(() => parseCalendar(text)).toThrow(message);
});

test('a calendar can have no windows', () => {
  expect(parseCalendar('windows: []')).toEqual([]);
});

/**
 * Mounts a file as the kubelet mounts a ConfigMap: behind a symbolic link to a folder. Each write replaces the link.
 */
async function mount() {
  const folder = await mkdtemp(join(tmpdir(), 'calendar-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  let count = 0;
  const write = async (text: string) => {
    const version = await mkdtemp(join(folder, '..v'));
    await writeFile(join(version, 'calendar.yaml'), text);
    const link = join(folder, `..link-${count++}`);
    await symlink(version, link);
    await rename(link, join(folder, '..data'));
  };
  await symlink(join('..data', 'calendar.yaml'), join(folder, 'calendar.yaml'));
  const { logger: log, lines } = collectingLogger();
  const registry = new Registry();
  const file = new CalendarFile({
    path: join(folder, 'calendar.yaml'),
    clock: { after: () => ({ cancel: () => undefined }) },
    log,
    registry,
  });
  return { file, write, lines, metrics: () => registry.text() };
}

test('the last valid content of a calendar file stays in use while the file is invalid', async () => {
  const { file, write, lines, metrics } = await mount();
  let changes = 0;
  file.subscribe(() => changes++);
  await write(ONCE);
  await file.read();
  await file.read();
  expect([file.calendar?.size, file.problem, changes]).toEqual([1, undefined, 1]);

  await write('windows: [{}]');
  await file.read();
  await file.read();
  expect([file.calendar?.size, changes]).toEqual([1, 2]);
  expect(metrics()).toMatch(/^vmwright_gpu_calendar_valid 0$/m);
  expect(file.problem).toMatch(
    /^calendar file .*calendar\.yaml is invalid, using its last valid content: windows\[0\] selects no nodes/,
  );
  expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1);

  await write('');
  await file.read();
  expect([file.calendar?.size, changes]).toEqual([1, 3]);
  expect(file.problem).toContain('using its last valid content: windows must be a list');

  await write('windows: []');
  await file.read();
  expect([file.calendar?.size, file.problem, changes]).toEqual([0, undefined, 4]);
  expect(metrics()).toMatch(/^vmwright_gpu_calendar_valid 1$/m);
});

test('a calendar file that is missing at the start is reported, and read when it appears', async () => {
  const { file, write } = await mount();
  await file.read();
  expect(file.calendar).toBeUndefined();
  expect(file.problem).toMatch(/^calendar file .* is invalid, no new reservations are made: ENOENT/);
  await write(ONCE);
  await file.read();
  expect([file.calendar?.size, file.problem]).toEqual([1, undefined]);
});
