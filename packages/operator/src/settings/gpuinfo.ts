import type { Sources } from './sources.ts';
import { invalidSetting, parseTime } from './values.ts';
import { hasVcenter, parseVsphereSettings, type VsphereSettings } from './vsphere.ts';

/** Settings of the GPUInfo controller. */
export interface GpuInfoSettings {
  /** Seed of simulated GPUs and maintenance; undefined: GPUs and maintenance are read from Kubernetes and vCenter. */
  readonly seed: string | undefined;
  /** Time for which a node without known maintenance counts as available, counted from now. */
  readonly horizonMs: number;
  /** File with planned maintenance. */
  readonly calendar: string | undefined;
  /** Custom attribute of ESXi hosts with the start of their maintenance. */
  readonly maintenanceAttribute: string;
  /** vCenters of the nodes; undefined if none is given: facts about nodes then come only from Kubernetes. */
  readonly vsphere: VsphereSettings | undefined;
}

/** Maximum of `horizonMs`: times further in the future may not be representable as a `Date`. */
const MOST_MS = 1_000_000 * 3_600_000;

/** @throws SettingsError */
export function parseGpuInfoSettings(sources: Sources): GpuInfoSettings {
  const { text, name } = sources;
  const source = text('gpu-source');
  if (source !== 'real' && source !== 'simulated')
    throw invalidSetting(name('gpu-source'), source, 'real or simulated');
  const horizonMs = parseTime(name('gpu-horizon'), text('gpu-horizon'));
  if (horizonMs > MOST_MS) throw invalidSetting(name('gpu-horizon'), text('gpu-horizon'), 'at most 1000000h');
  return {
    seed: source === 'simulated' ? text('gpu-seed') : undefined,
    horizonMs,
    calendar: text('gpu-calendar') || undefined,
    maintenanceAttribute: text('gpu-maintenance-attribute'),
    vsphere: hasVcenter(sources) ? parseVsphereSettings(sources) : undefined,
  };
}
