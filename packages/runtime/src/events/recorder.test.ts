import { collectingLogger, nodeWorld, silentLogger } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { test } from '@vmwright/testbed/vitest';
import { describe, expect, test as plain } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { waitForPermissions } from '../../test/permissions.ts';
import { Event } from '../kind/builtin/event.ts';
import { EventRecorder } from './recorder.ts';

const failed = {
  type: 'Warning',
  reason: 'CloneFailed',
  note: 'the datastore is full; free some space',
} as const;

test('equal events appear as one event with a count in kubectl describe', async ({ cluster }) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const object = await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'subject' } });
  const recorder = new EventRecorder({
    world: nodeWorld,
    client,
    controller: 'vmwright.dev/test',
    instance: 'replica-1',
    log: silentLogger,
  });
  recorder.record(ConfigMap, object, failed);
  await recorder.flush();
  for (let i = 0; i < 5; i++) recorder.record(ConfigMap, object, failed);
  recorder.record(ConfigMap, object, { type: 'Normal', reason: 'Cloned', note: 'x'.repeat(2_000) });
  await recorder.flush();

  const { items } = await client.list(Event, { namespace: namespace.name });
  const mine = items.filter(({ regarding }) => regarding.uid === object.metadata.uid);
  expect(mine.map(({ reason, type, series }) => [reason, type, series?.count]).sort()).toEqual([
    ['CloneFailed', 'Warning', 2],
    ['Cloned', 'Normal', undefined],
  ]);
  const described = await cluster.kubectl(['-n', namespace.name, 'describe', 'configmap', 'subject']);
  expect(described.stdout).toMatch(/Warning +CloneFailed .*the datastore is full; free some space/);
});

test('an EventRecorder with the group core needs only a role for events in the core group', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using admin = await connect(cluster.kubeconfig);
  const inNamespace = (...args: readonly string[]) => cluster.kubectl(['-n', namespace.name, ...args]);
  await inNamespace('create', 'role', 'core-events', '--verb=create,patch', '--resource=events');
  const subject = `--serviceaccount=${namespace.name}:default`;
  await inNamespace('create', 'rolebinding', 'core-events', '--role=core-events', subject);
  const permissions = ['create', 'patch'].map((verb) => ({
    verb,
    resource: 'events',
    namespace: namespace.name,
  }));
  await waitForPermissions(cluster, { namespace: namespace.name, name: 'default' }, permissions);
  const kubeconfig = await cluster.kubeconfigFor({ namespace: namespace.name, name: 'default' });
  await using client = await connect(kubeconfig);
  const metadata = { namespace: namespace.name, name: 'subject' };
  const object = await admin.create(ConfigMap, { metadata });
  const { logger, lines } = collectingLogger();
  const options = { world: nodeWorld, client, instance: 'replica-1', log: logger };
  const recorder = new EventRecorder({ ...options, controller: 'vmwright.dev/core', group: 'core' });
  for (let count = 0; count < 2; count++) {
    recorder.record(ConfigMap, object, failed);
    await recorder.flush();
  }
  expect(lines).toEqual([]);
  const { items } = await admin.list(Event, { namespace: namespace.name });
  expect(items.filter(({ regarding }) => regarding.uid === object.metadata.uid)).toMatchObject([
    {
      type: 'Warning',
      reason: 'CloneFailed',
      action: 'CloneFailed',
      note: failed.note,
      reportingController: 'vmwright.dev/core',
      reportingInstance: 'replica-1',
      series: { count: 2 },
      regarding: { apiVersion: 'v1', kind: 'ConfigMap', ...metadata },
    },
  ]);
  const described = await inNamespace('describe', 'configmap', 'subject');
  expect(described.stdout).toMatch(/Warning +CloneFailed .*vmwright.dev\/core.*the datastore is full/);

  const current = new EventRecorder({ ...options, controller: 'vmwright.dev/current' });
  current.record(ConfigMap, object, failed);
  await current.flush();
  expect(lines).toMatchObject([
    { level: 'warn', error: expect.stringContaining('events.events.k8s.io is forbidden') },
  ]);
});

describe('EventRecorder', () => {
  const start = () => {
    const clock = new VirtualClock();
    const sent: string[] = [];
    let id = 0;
    const fails = { now: false };
    const send = async (what: string) => {
      sent.push(what);
      if (fails.now) throw new Error('the API server is unavailable');
    };
    const recorder = new EventRecorder({
      world: { now: () => clock.now(), monotonic: () => clock.monotonic(), uuid: () => `${id++}` },
      client: {
        create: (_kind, event) => send(`create ${event.metadata.name}`),
        mergePatch: (_kind, ref, patch) => send(`patch ${ref.name} ${JSON.stringify(patch)}`),
      },
      controller: 'c',
      instance: 'i',
      log: silentLogger,
    });
    return { clock, recorder, sent, fails };
  };
  const object = { metadata: { name: 'o', namespace: 'n', uid: 'u' } };

  plain('the count of an event series is written at the second event and then once a minute', () => {
    const { clock, recorder, sent } = start();
    for (let i = 0; i < 100; i++) {
      recorder.record(ConfigMap, object, failed);
      clock.advance(2_000);
    }
    expect(sent.map((each) => each.replace(/,"lastObservedTime.*/, ''))).toEqual([
      'create o.0',
      'patch o.0 {"series":{"count":2',
      'patch o.0 {"series":{"count":32',
      'patch o.0 {"series":{"count":62',
      'patch o.0 {"series":{"count":92',
    ]);
  });

  plain('an equal event after six minutes starts a new series', () => {
    const { clock, recorder, sent } = start();
    recorder.record(ConfigMap, object, failed);
    clock.advance(6 * 60_000 + 1);
    recorder.record(ConfigMap, object, failed);
    expect(sent).toEqual(['create o.0', 'create o.1']);
  });

  plain('an object with many different events is rate-limited, and other objects are not', () => {
    const { clock, recorder, sent } = start();
    for (let i = 0; i < 100; i++) recorder.record(ConfigMap, object, { ...failed, note: `attempt ${i}` });
    expect(sent).toHaveLength(25);
    recorder.record(ConfigMap, { metadata: { name: 'p', namespace: 'n', uid: 'v' } }, failed);
    expect(sent).toHaveLength(26);
    clock.advance(300_000);
    for (let i = 0; i < 5; i++) recorder.record(ConfigMap, object, { ...failed, note: `later ${i}` });
    expect(sent).toHaveLength(27);
  });

  plain('after a failed write the next equal event is sent immediately, under the same name', async () => {
    const { clock, recorder, sent, fails } = start();
    fails.now = true;
    recorder.record(ConfigMap, object, failed);
    await recorder.flush();
    fails.now = false;
    for (let i = 0; i < 4; i++) {
      clock.advance(1_000);
      recorder.record(ConfigMap, object, failed);
      await recorder.flush();
    }
    expect(sent.map((each) => each.replace(/,"lastObservedTime.*/, ''))).toEqual([
      'create o.0',
      'patch o.0 {"series":{"count":2',
    ]);
  });

  plain('after a failed write, later events are sent', async () => {
    const { recorder, sent, fails } = start();
    fails.now = true;
    recorder.record(ConfigMap, object, failed);
    await recorder.flush();
    fails.now = false;
    recorder.record(ConfigMap, object, { ...failed, note: 'another' });
    expect(sent).toHaveLength(2);
  });
});

test("event fields are truncated to the server's limits in bytes; only the first rejected event is logged as a warning", async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace();
  await using client = await connect(cluster.kubeconfig);
  const object = await client.create(ConfigMap, { metadata: { namespace: namespace.name, name: 'subject' } });
  const { logger, lines } = collectingLogger();
  const options = { world: nodeWorld, client, instance: 'i'.repeat(300), log: logger };
  const recorder = new EventRecorder({ ...options, controller: 'vmwright.dev/test' });
  recorder.record(ConfigMap, object, {
    type: 'Warning',
    reason: 'R'.repeat(200),
    note: `x${'ü'.repeat(600)}`,
  });
  await recorder.flush();
  const { items } = await client.list(Event, { namespace: namespace.name });
  const [event] = items.filter(({ regarding }) => regarding.uid === object.metadata.uid);
  expect(event?.note).toBe(`x${'ü'.repeat(511)}`);
  expect(event?.reason).toHaveLength(128);
  expect(lines).toEqual([]);

  const rejected = new EventRecorder({ ...options, controller: 'no such/name' });
  for (const note of ['one', 'two']) rejected.record(ConfigMap, object, { ...failed, note });
  await rejected.flush();
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    ['warn', 'API server rejected an event; further rejections are logged at debug level'],
    ['debug', 'Event lost'],
  ]);
});
