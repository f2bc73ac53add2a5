import {
  collectorMetrics,
  type MetricDescription,
  ObjectMetrics,
  processMetrics,
  Registry,
  RuntimeMetrics,
} from '@vmwright/runtime';
import { cloudMetrics } from './cloud.ts';
import { gpuMetrics } from './gpuinfo/metrics.ts';
import { calendarMetric } from './gpuinfo/time-sources/calendar-file.ts';
import { buildMetrics, OBJECTS } from './metrics.ts';
import { MirrorMetrics } from './mirror/metrics.ts';
import { vcenterMetrics } from './vcenter/connect.ts';
import { VM } from './vm/resource.ts';
import { imageMetrics } from './vmdiskimage/metrics.ts';
import { VmGroup } from './vmgroup/resource.ts';

/** Metrics of one part of a program. */
export interface MetricSection {
  readonly title: string;
  readonly metrics: readonly MetricDescription[];
}

/**
 * Returns the metrics of the operator and of the status mirror, section by section. The functions that declare them are
 * the ones that the programs call. So generated documentation cannot differ from what the programs expose.
 */
export function declaredMetrics(): readonly MetricSection[] {
  const section = (title: string, declare: (registry: Registry) => void): MetricSection => {
    const registry = new Registry();
    declare(registry);
    return { title, metrics: registry.describe() };
  };
  return [
    section('Operator', (registry) => {
      buildMetrics(registry, '');
      new ObjectMetrics(registry, OBJECTS);
    }),
    section('VM', (registry) => {
      cloudMetrics(registry);
      collectorMetrics(registry, 'vmwright_vm', VM);
    }),
    section('VmGroup', (registry) => {
      vcenterMetrics(registry);
      collectorMetrics(registry, 'vmwright_vmgroup', VmGroup);
    }),
    section('VMDiskImage', (registry) => imageMetrics(registry, { count: () => 0 })),
    section('GPUInfo', (registry) => {
      gpuMetrics(registry, { latest: undefined }, () => false);
      calendarMetric(registry);
    }),
    section('Status mirror', (registry) => new MirrorMetrics(registry, () => NO_GAUGES)),
    section('Runtime', (registry) => {
      const runtime = new RuntimeMetrics(registry);
      runtime.sharding('');
      runtime.certificates();
      processMetrics(registry, { clock: { now: () => 0 } });
    }),
  ];
}

const NO_GAUGES = {
  pending: 0,
  oldestPendingSeconds: 0,
  deadLetters: 0,
  duplicateRows: 0,
  withoutRow: 0,
  isConnected: false,
  lastComparisonSeconds: 0,
};
