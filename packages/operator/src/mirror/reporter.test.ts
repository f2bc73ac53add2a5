import { collectingLogger, Registry } from '@vmwright/core';
import { parseExposition, VirtualClock } from '@vmwright/core/testing';
import { describe, expect, test } from 'vitest';
import { DatabaseError } from './database.ts';
import { type MirrorGauges, MirrorMetrics } from './metrics.ts';
import { Reporter } from './reporter.ts';
import type { Row } from './rows.ts';
import type { VirtualMachine } from './virtual-machine.ts';

const IDLE: MirrorGauges = {
  pending: 0,
  oldestPendingSeconds: 0,
  deadLetters: 0,
  duplicateRows: 0,
  withoutRow: 0,
  isConnected: false,
  lastComparisonSeconds: 0,
};
const REJECTED = new DatabaseError('check constraint "c" is violated', '23514', 'rows');

function row(vmName: string, namespace = 'tenant'): Row {
  return { id: `id-${vmName}`, vmName, namespace, vapp: 'v', status: '', createdAt: 0 };
}

function vm(name: string): VirtualMachine {
  return { metadata: { namespace: 'tenant', name, uid: name } };
}

function start({ statusEvents = true, gauges = IDLE } = {}) {
  const clock = new VirtualClock();
  const registry = new Registry();
  const metrics = new MirrorMetrics(registry, () => gauges);
  const { logger, lines } = collectingLogger();
  const events: string[] = [];
  const reporter = new Reporter({
    world: clock,
    log: logger,
    metrics,
    statusEvents,
    event: (_kind, { metadata }, { type, reason, note }) =>
      events.push(`${type} ${reason} ${metadata.name}: ${note}`),
  });
  const text = () => registry.text();
  const commit = (name: string, status = 'POWERED_ON') =>
    reporter.committed(vm(name), { row: row(name), status, state: 'Running', uid: name }, 5, undefined);
  return { clock, reporter, metrics, events, lines, text, commit };
}

describe('the metrics', () => {
  test('metrics never have the name of a VM as a label', () => {
    const { reporter, text, commit } = start();
    for (let at = 0; at < 100; at++) {
      reporter.wrote('tenant', 'POWERED_ON', { type: 'written' }, 2);
      commit(`vm-${at}`);
      reporter.writeFailed(vm(`vm-${at}`), row(`vm-${at}`), REJECTED);
    }
    expect(text()).not.toContain('vm-1');
    expect(text()).toContain(
      'ssvirt_vm_status_updates_total{namespace="tenant",status="POWERED_ON",result="success"} 100',
    );
    expect(text()).toContain('ssvirt_vm_reconcile_errors_total{namespace="tenant",error_type="23514"} 100');
    expect(text()).toContain('ssvirt_vm_status_update_duration_seconds_count{namespace="tenant"} 100');
  });

  test('metrics have one series for each of the first thousand namespaces, and one for all others', () => {
    const { metrics, text } = start();
    for (let at = 0; at < 1_500; at++) metrics.wrote(`n-${at}`, 'POWERED_ON', { type: 'written' }, 2);
    metrics.wrote('n-7', 'POWERED_ON', { type: 'written' }, 2);
    const family = parseExposition(text()).get('ssvirt_vm_status_updates_total');
    expect(family?.samples).toHaveLength(1_001);
    expect(text()).toContain('{namespace="other",status="POWERED_ON",result="success"} 500');
    expect(text()).toContain('{namespace="n-7",status="POWERED_ON",result="success"} 2');
  });

  test('metrics count writes by the label result: success, unchanged or error', () => {
    const { metrics, text } = start();
    for (const type of ['written', 'unchanged', 'skipped'] as const) metrics.wrote('n', 'S', { type }, 1);
    metrics.wrote('n', 'S', { type: 'rejected', error: REJECTED }, 1);
    const counts = [...text().matchAll(/^ssvirt_vm_status_updates_total\{.*result="(\w+)"\} (\d+)$/gm)];
    expect(counts.map(([, result, count]) => `${result} ${count}`).sort()).toEqual([
      'error 2',
      'success 1',
      'unchanged 1',
    ]);
  });

  test('the metrics contain the gauges, and the counters of corrected rows start at 0', () => {
    const gauges = { ...IDLE, pending: 3, isConnected: true, lastComparisonSeconds: 1_763_000_000 };
    const { text } = start({ gauges });
    for (const line of [
      'ssvirt_vm_pending 3',
      'ssvirt_database_up 1',
      'ssvirt_last_comparison_timestamp_seconds 1763000000',
      'ssvirt_vm_corrections_total{trigger="start"} 0',
      'ssvirt_vm_corrections_total{trigger="resync"} 0',
    ])
      expect(text()).toContain(line);
  });
});

describe('events', () => {
  test('a changed row records an event unless `statusEvents` is off; failed writes record events in any case', () => {
    const { commit, events } = start();
    commit('web');
    expect(events).toEqual(['Normal StatusUpdated web: VM status updated to POWERED_ON']);
    const off = start({ statusEvents: false });
    off.commit('web');
    off.reporter.writeFailed(vm('web'), row('web'), REJECTED);
    expect(off.events).toHaveLength(1);
  });

  test('ten thousand changes record a hundred events, and suppressed events are counted', () => {
    const { commit, events, text } = start();
    for (let at = 0; at < 10_000; at++) commit(`vm-${at}`);
    expect(events).toHaveLength(100);
    expect(text()).toContain('ssvirt_vm_events_dropped_total 9900');
  });

  test('a failing row records one DatabaseUpdateFailed event per minute', () => {
    const { clock, reporter, events } = start();
    for (let second = 0; second < 120; second++) {
      reporter.writeFailed(vm('web'), row('web'), REJECTED);
      clock.advance(1_000);
    }
    expect(events).toEqual(
      Array(2).fill(
        'Warning DatabaseUpdateFailed web: Failed to update VM status in database: check constraint "c" is violated; retrying',
      ),
    );
  });

  test('a dead letter records a ReconciliationFailed event and logs an error', () => {
    const { reporter, events, lines } = start();
    reporter.writeFailed(vm('web'), row('web'), REJECTED);
    reporter.deadLetter(vm('web'), row('web'), REJECTED);
    expect(events[1]).toBe(
      'Warning ReconciliationFailed web: Failed to update VM status repeatedly: check constraint "c" is violated; retrying slowly',
    );
    expect(lines.filter(({ level }) => level === 'error')).toMatchObject([{ vm: 'web', vmID: 'id-web' }]);
  });

  test('a row without a VM records no event', () => {
    const { reporter, events } = start();
    const write = { row: row('gone'), status: 'DELETED', state: 'Deleted', uid: undefined } as const;
    reporter.committed(undefined, write, undefined, 'start');
    reporter.writeFailed(undefined, row('gone'), REJECTED);
    reporter.deadLetter(undefined, row('gone'), REJECTED);
    expect(events).toEqual([]);
  });
});
