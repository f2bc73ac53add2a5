import type { KubeObject } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { plain } from '../output.ts';
import { problemsOf } from '../state.ts';
import { summarize } from '../summary.ts';
import { shorten, type TreeNode, treeOf } from '../tree.ts';
import { renderChecks } from './check.ts';
import { renderDescription } from './describe.ts';
import { renderStatus } from './status.ts';
import { renderExplanation } from './why.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
const HOUR_AGO = '2026-01-01T00:00:00Z';

type Status = 'True' | 'False' | 'Unknown';

const condition = (type: string, status: Status, reason: string, message: string) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: HOUR_AGO,
});

const object = (name: string, status: object, metadata: object = {}): KubeObject =>
  Object.assign(
    { metadata: { namespace: 'default', name, uid: name, generation: 1, ...metadata } },
    { status: { observedGeneration: 1, ...status } },
  );

const ready = (name: string) =>
  object(name, { conditions: [condition('Ready', 'True', 'Running', 'It runs')] });
const stalled = (name: string) => {
  const [reason, message] = ['NameProhibited', 'choose another vmname'];
  return object(name, {
    conditions: [condition('Ready', 'False', reason, message), condition('Stalled', 'True', reason, message)],
  });
};

test('`vmwright status` groups objects with the same problem and lists stalled objects first', () => {
  const waiting = object('d', {
    conditions: [
      condition('Ready', 'Unknown', 'CloudUnreachable', 'the cloud does not answer'),
      condition('CloudAvailable', 'False', 'CloudUnreachable', 'the cloud does not answer'),
    ],
  });
  const kinds = [
    { kind: 'VM', items: [ready('ok'), waiting, stalled('a'), stalled('b')] },
    { kind: 'VmGroup', items: [], problem: 'not installed' },
  ];
  const text = renderStatus(
    {
      operator: {
        version: '1.0.0',
        revision: 'abc',
        controllers: [
          { name: 'vm', state: 'on' },
          { name: 'vmgroup', state: 'off', why: 'VC_HOST is not set', remedy: 'set it' },
        ],
      },
      leader: { holder: 'pod-1', renewedAt: NOW - 2_000, isExpired: false },
      ...summarize(kinds, NOW),
    },
    NOW,
    plain,
  );
  expect(text).toBe(`Operator
  vmwright 1.0.0 (abc)
  leader pod-1 (last renewed the Lease 2s ago)

Controllers
  vm        on
  vmgroup   off   VC_HOST is not set; set it

Backends
  cloud   unavailable   the cloud does not answer

Objects
  KIND      TOTAL   READY           STALLED   UNKNOWN
  VM        4       1               2         1
  VmGroup   -       not installed

Needs attention
  VM default/a, default/b: Stalled for 60m
    NameProhibited: choose another vmname
  VM default/d: Unknown for 60m
    CloudUnreachable: the cloud does not answer`);
});

test('`vmwright status` reports that the controllers are not known, that no replica leads, and that no object needs attention', () => {
  const report = {
    operator: { problem: 'no pod runs; set --operator-url' },
    leader: { holder: 'pod-1', renewedAt: NOW - 60_000, isExpired: true },
    ...summarize([{ kind: 'VM', items: [ready('a')] }], NOW),
  };
  const text = renderStatus(report, NOW, plain);
  expect(text).toContain('controllers are not known: no pod runs; set --operator-url');
  expect(text).toContain(
    'no replica leads: pod-1 has stopped (last renewed the Lease 60s ago); check that the operator runs',
  );
  expect(text).toMatch(/Needs attention\n {2}nothing$/);
});

test('a progressing object needs attention only after five minutes', () => {
  const progressing = (since: string) =>
    object('a', {
      conditions: [{ ...condition('Ready', 'False', 'Creating', 'm'), lastTransitionTime: since }],
    });
  const attention = (item: KubeObject) => summarize([{ kind: 'VM', items: [item] }], NOW).attention.length;
  expect([attention(progressing('2026-01-01T00:59:00Z')), attention(progressing(HOUR_AGO))]).toEqual([0, 1]);
  const unseen = object('b', {}, { generation: 2, creationTimestamp: HOUR_AGO });
  expect(summarize([{ kind: 'VM', items: [unseen] }], NOW).attention).toMatchObject([
    { state: 'Unseen', reason: 'NotObserved' },
  ]);
});

test('`vmwright describe` groups equal machines and lists a machine with a problem separately', () => {
  const replica = (name: string, power?: string) => ({ name, ...(power && { power }) });
  const group = object('web', {
    replicas: [replica('web-0', 'poweredOn'), replica('web-1', 'poweredOn'), replica('web-2')],
    conditions: [
      condition('Ready', 'False', 'Progressing', '2 of 3 machines exist'),
      condition('VCenterAvailable', 'False', 'VcenterBusy', 'wait'),
    ],
  });
  const tree = shorten(treeOf({ kind: 'VmGroup', object: group, children: [] }));
  expect(renderDescription({ tree, problems: problemsOf(group) }, NOW, plain)).toBe(
    `NAME                          READY   REASON        SINCE   MESSAGE
VmGroup/web                   False   Progressing   60m     2 of 3 machines exist
├─ 2 machines: web-0, web-1   True    poweredOn     -
└─ machine web-2              False   not created   -

Problems
  VCenterAvailable is False (VcenterBusy)
    wait`,
  );
});

test('`vmwright describe` shows children as a tree, without messages that repeat the message of the parent', () => {
  const leaf = (label: string, message: string): TreeNode => ({
    label,
    kind: label,
    name: label,
    ready: 'False',
    reason: 'R',
    message,
    since: '',
    children: [],
  });
  const root: TreeNode = { ...leaf('root', 'm'), children: [leaf('echo', 'm'), leaf('own', 'n')] };
  expect(shorten(root).children.map(({ message }) => message)).toEqual(['', 'n']);
  const text = renderDescription({ tree: { ...root, children: [root] }, problems: [] }, NOW, plain);
  expect(text.split('\n').map((line) => line.split(' False')[0]?.trimEnd())).toEqual([
    'NAME         READY   REASON   SINCE   MESSAGE',
    'root',
    '└─ root',
    '   ├─ echo',
    '   └─ own',
  ]);
});

test('each check is rendered as one line, and a failed check is followed by its remedy', () => {
  const text = renderChecks(
    [
      { name: 'cluster', state: 'passed', detail: 'answers' },
      { name: 'crd x', state: 'failed', detail: 'not installed', remedy: 'apply it' },
    ],
    plain,
  );
  expect(text).toBe('✓ cluster: answers\n✗ crd x: not installed\n    apply it\n1 of 2 checks failed.');
});

test('`vmwright why` shows what blocks an object, whether the operator tries again, the nodes and the recent warnings', () => {
  const text = renderExplanation(
    {
      object: 'GPUInfo ml/train',
      isBlocked: true,
      blockers: [{ reason: 'NoNode', message: 'no node is suitable' }],
      retry: 'The operator tries again automatically.',
      nodes: [{ node: 'n1', host: 'esx1', isSuitable: false, reason: 'TooShort', message: 'only 3 h' }],
      events: [{ age: '5s', reason: 'Waiting', note: 'no node' }],
    },
    plain,
  );
  expect(text).toBe(`GPUInfo ml/train is blocked by
  NoNode: no node is suitable

The operator tries again automatically.

Nodes
  NODE   HOST   SUITABLE   REASON     MESSAGE
  n1     esx1   no         TooShort   only 3 h

Recent warnings
  5s   Waiting   no node`);
});
