import type { Vim25 } from '@vmwright/vsphere';
import { describe, expect, test } from 'vitest';
import { attributeMaintenance, plannedTask } from './host-maintenance.ts';

const HOST = { type: 'HostSystem', value: 'host-1' };
const CLUSTER = { type: 'ClusterComputeResource', value: 'domain-c1' };
const VM = { type: 'VirtualMachine', value: 'vm-1' };
const AT = new Date('2030-01-31T22:00:00Z');

/** Returns the properties of an enabled task without a next run. */
function properties(method: string): Parameters<typeof plannedTask>[0] {
  const action: Vim25['MethodAction'] = { _type: 'MethodAction', name: method };
  return {
    'info.name': 'Patch host',
    'info.enabled': true,
    'info.state': 'queued',
    'info.action': action,
    'info.entity': HOST,
    'info.taskObject': HOST,
  };
}

function task(method: string, more: Parameters<typeof plannedTask>[0] = {}) {
  return plannedTask({ ...properties(method), 'info.nextRunTime': AT, ...more });
}

describe('scheduled tasks that are maintenance', () => {
  test.each([
    'EnterMaintenanceMode_Task',
    'RebootHost_Task',
    'ShutdownHost_Task',
    'PowerDownHostToStandBy_Task',
    'DisconnectHost_Task',
    'vim.HostSystem.enterMaintenanceMode',
    'reboot',
  ])('a scheduled task is maintenance of a host if it calls %s', (method) => {
    expect(task(method)).toEqual({
      entities: ['host-1'],
      startsAt: AT.getTime(),
      source: "vCenter scheduled task 'Patch host'",
    });
  });

  test('a scheduled task of a cluster is maintenance of the cluster and of the host it acts on', () => {
    expect(task('RebootHost_Task', { 'info.entity': CLUSTER })?.entities).toEqual(['domain-c1', 'host-1']);
    const both = { 'info.entity': CLUSTER, 'info.taskObject': CLUSTER };
    expect(task('RebootHost_Task', both)?.entities).toEqual(['domain-c1']);
  });

  test('a running scheduled task is maintenance that began when the task started', () => {
    const running = { 'info.state': 'running', 'info.prevRunTime': new Date(1_000) } as const;
    expect(task('RebootHost_Task', running)?.startsAt).toBe(1_000);
  });
});

describe('scheduled tasks that are no maintenance', () => {
  test('a scheduled task is no maintenance if it calls another method or its target is a machine', () => {
    expect(task('ExitMaintenanceMode_Task')).toBe(undefined);
    expect(task('CreateSnapshot_Task', { 'info.entity': VM, 'info.taskObject': VM })).toBe(undefined);
    expect(task('reboot', { 'info.entity': VM, 'info.taskObject': VM })).toBe(undefined);
    expect(task('', { 'info.action': { _type: 'SendEmailAction' } })).toBe(undefined);
    expect(plannedTask({})).toBe(undefined);
  });

  test('a scheduled task is no maintenance if it is disabled or will not run again', () => {
    expect(task('RebootHost_Task', { 'info.enabled': false })).toBe(undefined);
    expect(plannedTask(properties('RebootHost_Task'))).toBe(undefined);
  });
});

describe('custom attributes', () => {
  test.each([
    ['2030-01-31T22:00:00Z', AT.getTime()],
    [' 2030-01-31T23:00:00+01:00 ', AT.getTime()],
    ['2030-01-31t22:00:00.000z', AT.getTime()],
    ['2030-01-31 22:00:00Z', AT.getTime()],
    ['now', 0],
    ['NOW', 0],
  ])('the custom attribute value %s is a start time', (value, startsAt) => {
    expect(attributeMaintenance('maintenance', value)).toEqual({
      maintenance: { startsAt, source: "custom attribute 'maintenance'" },
    });
  });

  test.each(['', '   '])('the custom attribute value %j means that no maintenance is planned', (value) => {
    expect(attributeMaintenance('maintenance', value)).toEqual({});
  });

  test.each([
    ...['tomorrow', '2030-01-31', '2030-01-31T22:00:00', '31.01.2030 22:00', '1896127200', 'now!'],
    ...['2030-13-01T00:00:00Z', '2030-02-30T00:00:00Z', '2030-01-31T25:00:00Z', '2030-01-31T22:00:00+0100'],
    ...['\u0000', '💥', 'x'.repeat(10_000)],
  ])('the custom attribute value %j is reported as invalid', (value) => {
    const { maintenance, warning } = attributeMaintenance('maintenance', value);
    expect(maintenance).toBe(undefined);
    expect(warning).toMatch(
      /^custom attribute 'maintenance' is '.*', which is neither a time .* nor 'now'; correct or clear it$/s,
    );
    expect(warning?.length).toBeLessThan(250);
  });
});
