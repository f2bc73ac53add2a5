import { collectingLogger } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { audit } from './audit.ts';

const object = {
  kind: 'VM',
  metadata: { namespace: 'shop', name: 'web', uid: 'u-1', generation: 3 },
};

test('a change of a machine is logged as one line, at every log level', () => {
  const { logger, lines } = collectingLogger('error');
  const reconcileLog = logger.child({ controller: 'vm', object: 'shop/web' });
  audit(reconcileLog, object, {
    act: 'create',
    resource: 'Server',
    machine: 's-1',
    machineName: 'web-1',
    reason: 'the VM has no machine',
    task: 'task-7',
  });
  expect(lines).toEqual([
    {
      level: 'info',
      time: expect.any(String),
      msg: 'Creating machine',
      controller: 'vm',
      audit: 'create',
      kind: 'VM',
      object: 'shop/web',
      uid: 'u-1',
      generation: 3,
      resource: 'Server',
      machine: 's-1',
      machineName: 'web-1',
      reason: 'the VM has no machine',
      task: 'task-7',
    },
  ]);
});

test('an audit line omits generation, machine name and task if they are unknown', () => {
  const { logger, lines } = collectingLogger();
  const metadata = { namespace: 'shop', name: 'web', uid: 'u-1' };
  const act = { act: 'collect', resource: 'Server', machine: 's-1', reason: 'late' } as const;
  audit(logger, { kind: 'VM', metadata }, act);
  expect(Object.keys(lines[0] ?? {})).toEqual(
    'level time msg audit kind object uid resource machine reason'.split(' '),
  );
});
