import { describe, expect, test } from 'vitest';
import type { RemoteMachine } from '../../remote/machine.ts';
import { drifted, MANAGER, orphans, plan } from './plan.ts';
import type { Machine, MachineStatus } from './resource.ts';
import { variantNamed } from './variant.ts';

const naive = variantNamed('create-then-write');
const lookUp = variantNamed('look-up-first');
const token = variantNamed('token');
const sound = variantNamed('sound');

function machine(status?: MachineStatus): Machine {
  const metadata = { namespace: 'default', name: 'ant', uid: 'u-1', generation: 3 };
  return { metadata, spec: { size: 2 }, ...(status && { status }) };
}

const there: RemoteMachine = {
  id: 'm-1',
  size: 2,
  state: 'ready',
  owner: { manager: MANAGER, uid: 'u-1' },
  createdMs: 0,
};

describe('plan', () => {
  test('a controller variant creates a machine immediately if it neither looks up existing machines nor stores its intent', () => {
    const draft = { size: 2, owner: { manager: MANAGER, uid: 'u-1' } };
    expect(plan(naive, machine(), {})).toEqual({ do: 'create', draft });
    expect(plan(token, machine(), {})).toEqual({ do: 'create', draft: { ...draft, key: 'u-1' } });
  });

  test('a controller variant with a lookup searches for an existing machine first and adopts it', () => {
    expect(plan(lookUp, machine(), {})).toEqual({ do: 'look up', uid: 'u-1' });
    expect(plan(lookUp, machine(), { looked: true }).do).toBe('create');
    expect(plan(lookUp, machine(), { looked: true, machine: there }).do).toBe('report');
  });

  test('plan stores a new intent before each create', () => {
    const status = { attempts: 4, phase: 'Pending' } as const;
    expect(plan(sound, machine(status), {})).toEqual({
      do: 'intend',
      status: { attempts: 5, phase: 'Pending' },
    });
    expect(plan(sound, machine(status), { intended: true }).do).toBe('create');
  });

  test('plan reports Ready only when the machine is ready and has the requested size', () => {
    const small = { machine: { ...there, size: 1 } };
    expect(plan(sound, machine({ machineId: 'm-1' }), small)).toMatchObject({
      do: 'intend',
      status: { attempts: 1, size: 1 },
    });
    expect(plan(sound, machine({ machineId: 'm-1' }), { ...small, intended: true })).toEqual({
      do: 'resize',
      id: 'm-1',
      size: 2,
    });
    expect(
      plan(sound, machine({ machineId: 'm-1' }), { machine: { ...there, state: 'creating' } }),
    ).toMatchObject({
      do: 'report',
      status: { phase: 'Creating' },
    });
    expect(plan(sound, machine({ machineId: 'm-1' }), { machine: there })).toEqual({
      do: 'report',
      status: { machineId: 'm-1', size: 2, phase: 'Ready', observedGeneration: 3 },
    });
  });

  test('plan reports a lost machine as Lost instead of creating a second one', () => {
    const step = plan(sound, machine({ machineId: 'm-1' }), { machine: 'gone' });
    expect(step).toMatchObject({ do: 'report', status: { machineId: 'm-1', phase: 'Lost' } });
  });
});

describe('drifted and orphans', () => {
  test('drifted returns each object with a machine that is missing or differs from the spec', () => {
    const good = machine({ machineId: 'm-1', size: 2, phase: 'Ready' });
    expect(drifted([good], [there])).toEqual([]);
    expect(drifted([good], [{ ...there, size: 1 }])).toEqual([good]);
    expect(drifted([good], [])).toEqual([good]);
  });

  test('orphans returns the managed machines that have no object and are older than the grace period', () => {
    const foreign: RemoteMachine = { id: 'm-2', size: 1, state: 'ready', createdMs: 0 };
    const others: RemoteMachine = { ...foreign, id: 'm-3', owner: { manager: 'somebody', uid: 'u-9' } };
    const young: RemoteMachine = { ...there, id: 'm-4', createdMs: 59_000 };
    const list = { now: 60_000, items: [there, foreign, others, young] };
    expect(orphans(list, new Set(['u-1']))).toEqual([]);
    expect(orphans(list, new Set()).map(({ id }) => id)).toEqual(['m-1']);
  });
});
