import type { HostFacts, MachineFacts } from '../vcenter/compute-facts.ts';
import type { Blocker } from './candidate.ts';
import type { Node, Taint } from './kinds.ts';

/**
 * Returns why no job can start on a node according to Kubernetes.
 * @param resource extended resource of the node's accelerators. A `NoSchedule` taint with this key is no blocker,
 * because it keeps only other pods off the node. Pods that request the resource get a toleration from the admission
 * plugin ExtendedResourceToleration or from `status.placement` of their GPUInfo.
 */
export function nodeBlocker(
  { metadata, spec, status }: Node,
  resource: string | undefined,
): Blocker | undefined {
  if (metadata.deletionTimestamp !== undefined)
    return { reason: 'Unschedulable', message: 'the node is being deleted' };
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'True') {
    const reason = ready?.reason === undefined ? '' : ` (${ready.reason})`;
    return { reason: 'NotReady', message: `condition Ready is ${ready?.status ?? 'missing'}${reason}` };
  }
  if (spec?.unschedulable === true)
    return { reason: 'Unschedulable', message: 'the node is cordoned (kubectl uncordon)' };
  const taint = (spec?.taints ?? []).find((each) => blocks(each, resource));
  return taint === undefined ? undefined : { reason: 'Tainted', message: `taint ${taintText(taint)}` };
}

/** Whether a taint keeps pods off the node. `PreferNoSchedule` does not. */
function blocks({ key, effect }: Taint, resource: string | undefined): boolean {
  if (effect === 'NoExecute') return true;
  return effect === 'NoSchedule' && key !== resource;
}

/** Formats a taint as kubectl does: `dedicated=ml:NoSchedule`. */
function taintText({ key, value, effect }: Taint): string {
  return value === undefined || value === '' ? `${key}:${effect}` : `${key}=${value}:${effect}`;
}

/** Returns why no job can start on a node according to vCenter. */
export function machineBlocker(machine: MachineFacts, host: HostFacts | undefined): Blocker | undefined {
  if (!machine.isPoweredOn)
    return { reason: 'PoweredOff', message: `the VM '${machine.name}' is powered off` };
  if (host === undefined)
    return {
      reason: 'FactsUnknown',
      message: `vCenter does not report the host of the VM '${machine.name}'`,
    };
  if (!host.isConnected)
    return { reason: 'HostUnavailable', message: `vCenter has no connection to the host ${host.name}` };
  if (host.isInMaintenance)
    return { reason: 'HostInMaintenance', message: `the host ${host.name} is in maintenance mode` };
  return undefined;
}
