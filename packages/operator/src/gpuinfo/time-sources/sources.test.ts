import { expect, test } from 'vitest';
import type { Node, NodeClaim } from '../kinds.ts';
import { annotatedMaintenance } from './annotation.ts';
import { conditionMaintenance } from './conditions.ts';
import { gkeMaintenance } from './gke-label.ts';
import { karpenterMaintenance } from './karpenter.ts';
import { merged } from './planned.ts';
import { parseRfc3339 } from './times.ts';

const at = (text: string) => Date.parse(text);
const annotated = (annotations: Readonly<Record<string, string>>): Node => ({
  metadata: { name: 'n', annotations },
});
const [START, END] = ['vmwright.dev/maintenance-start', 'vmwright.dev/maintenance-end'];
const SOURCE = `annotation ${START}`;

test.each([
  ['2026-12-01T08:00:00Z', at('2026-12-01T08:00:00Z')],
  ['2026-12-01T08:00:00.5+01:00', at('2026-12-01T07:00:00.5Z')],
  [' 2026-12-01t08:00:00z ', at('2026-12-01T08:00:00Z')],
  ['2028-02-29T00:00:00Z', at('2028-02-29T00:00:00Z')],
  ['2026-02-29T00:00:00Z', undefined],
  ['2026-12-01T08:00:00', undefined],
  ['2026-12-01', undefined],
  ['2026-13-01T08:00:00Z', undefined],
  ['2026-12-01T24:00:00Z', undefined],
  ['tomorrow', undefined],
  ['', undefined],
])('the text "%s" is parsed as the RFC 3339 time %s', (text, expected) => {
  expect(parseRfc3339(text)).toBe(expected);
});

test.each<[Readonly<Record<string, string>>, readonly object[], readonly string[], (readonly string[])?]>([
  [{}, [], []],
  [{ [START]: 'now' }, [{ startsAt: 0, source: SOURCE }], []],
  [
    { [START]: '2026-12-01T08:00:00Z', [END]: '2026-12-01T12:00:00Z' },
    [{ startsAt: at('2026-12-01T08:00:00Z'), endsAt: at('2026-12-01T12:00:00Z'), source: SOURCE }],
    [],
  ],
  [
    { [END]: '2026-12-01T12:00:00Z' },
    [{ startsAt: 0, endsAt: at('2026-12-01T12:00:00Z'), source: SOURCE }],
    [],
  ],
  [
    { [START]: 'soon' },
    [],
    [],
    [`node n: annotation ${START} is "soon"; it must be a time such as 2026-12-01T08:00:00Z, or now`],
  ],
  [
    { [START]: 'now', [END]: 'later' },
    [{ startsAt: 0, source: SOURCE }],
    [`node n: annotation ${END} is "later"; it must be a time such as 2026-12-01T08:00:00Z`],
  ],
  [
    { [START]: '2026-12-01T08:00:00Z', [END]: '2026-12-01T07:00:00Z' },
    [{ startsAt: at('2026-12-01T08:00:00Z'), source: SOURCE }],
    [`node n: annotation ${END} is "2026-12-01T07:00:00Z"; it must be later than ${START}`],
  ],
])('the annotations %j mean the maintenance %j', (annotations, maintenance, warnings, unknown = []) => {
  const planned = annotatedMaintenance(annotated(annotations));
  expect(JSON.parse(JSON.stringify(planned))).toEqual({ maintenance, unknown, warnings });
});

const LABEL = 'cloud.google.com/scheduled-maintenance-time';
test.each([
  [undefined, [], 0],
  ['1796112000', [{ startsAt: 1_796_112_000_000, source: `label ${LABEL}` }], 0],
  ['1796112000000', [], 1],
  ['tomorrow', [], 1],
  ['', [], 1],
])('the GKE label with the value %s means the maintenance %j', (value, maintenance, unknown) => {
  const labels = value === undefined ? {} : { [LABEL]: value };
  const planned = gkeMaintenance({ metadata: { name: 'n', labels } });
  expect(planned.maintenance).toEqual(maintenance);
  expect(planned.unknown).toHaveLength(unknown);
  for (const sentence of planned.unknown) expect(sentence).toMatch(/^node n: label .* seconds since 1970/);
});

const condition = (type: string, status = 'True', lastTransitionTime = '2026-11-01T00:00:00Z'): Node => ({
  metadata: { name: 'n' },
  status: { conditions: [{ type, status, lastTransitionTime }] },
});
const SINCE = at('2026-11-01T00:00:00Z');
const OTHER = [{ startsAt: at('2026-12-01T08:00:00Z'), source: 'label' }];

test.each([
  ['MaintenanceInProgress', 'True', [], [SINCE]],
  ['DrainInProgress', 'True', OTHER, [SINCE]],
  ['Drained', 'True', [], [SINCE]],
  ['Drained', 'False', [], []],
  ['MaintenancePlanned', 'Unknown', [], []],
  ['MaintenancePlanned', 'True', [], [0]],
  ['MaintenancePlanned', 'True', OTHER, []],
  ['Ready', 'True', [], []],
])(
  'the condition %s=%s of a Node that announces the maintenance %j by label adds maintenance with the starts %j',
  (type, status, others, starts) => {
    const { maintenance, warnings } = conditionMaintenance(condition(type, status), others);
    expect(maintenance.map(({ startsAt }) => startsAt)).toEqual(starts);
    for (const { source } of maintenance) expect(source).toBe(`condition ${type}`);
    expect(warnings).toEqual([]);
  },
);

const claim = (expireAfter: string | undefined, more = {}): NodeClaim => ({
  metadata: { name: 'c', creationTimestamp: '2026-11-01T00:00:00Z', ...more },
  spec: { ...(expireAfter !== undefined && { expireAfter }) },
});

test.each([
  [claim('720h'), [{ startsAt: SINCE + 720 * 3_600_000, source: 'expireAfter of NodeClaim c' }], 0],
  [claim('1h30m'), [{ startsAt: SINCE + 5_400_000, source: 'expireAfter of NodeClaim c' }], 0],
  [claim('Never'), [], 0],
  [claim(undefined), [], 0],
  [claim('30d'), [], 1],
  [
    claim('Never', { deletionTimestamp: '2026-11-02T00:00:00Z' }),
    [{ startsAt: 0, source: 'deletion of NodeClaim c' }],
    0,
  ],
])('the NodeClaim %j means the maintenance %j', (given, maintenance, unknown) => {
  const planned = karpenterMaintenance(given);
  expect(planned.maintenance).toEqual(maintenance);
  expect(planned.unknown).toHaveLength(unknown);
});

test('a warning shows the beginning of a long value', () => {
  const [warning = ''] = annotatedMaintenance(annotated({ [START]: 'x'.repeat(10_000) })).unknown;
  expect(warning).toMatch(/ is "x{64}…"; it must be a time/);
});

test('maintenance of several sources is sorted by start, and ended maintenance is left out', () => {
  const of = (startsAt: number, endsAt: number | undefined, source: string) => ({ startsAt, endsAt, source });
  const sources = [
    { maintenance: [of(50, undefined, 'c'), of(10, 100, 'ended')], unknown: ['u'], warnings: ['w'] },
    { maintenance: [of(50, 200, 'b'), of(20, 101, 'a')], unknown: [], warnings: [] },
  ];
  const { maintenance, unknown, warnings } = merged(sources, 100);
  expect(maintenance.map(({ source }) => source)).toEqual(['a', 'b', 'c']);
  expect([unknown, warnings]).toEqual([['u'], ['w']]);
});
