import { parseQuantity } from '@vmwright/runtime';
import { isAccelerator } from './accelerators.ts';
import type { Container, PodSpec } from './kinds.ts';

/** Resources that a pod requests from its node. */
export interface PodRequests {
  readonly cpuMillicores: number;
  readonly memoryBytes: number;
  /** Number of accelerators by extended resource, without zeros. */
  readonly accelerators: Readonly<Record<string, number>>;
}

/**
 * Returns the resources that the scheduler reserves for a pod: the larger of two sums. One is the sum for all
 * containers. The other is the largest sum at any time while the init containers run. An init container with
 * `restartPolicy: Always` (a sidecar) runs beside all later containers, so it counts in both sums.
 */
export function podRequests(spec: PodSpec): PodRequests {
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const names = containers.flatMap(({ resources }) =>
    Object.keys({ ...resources?.limits, ...resources?.requests }).filter(isAccelerator),
  );
  const accelerators: Record<string, number> = {};
  for (const name of new Set(names)) {
    const count = requestOf(spec, name);
    if (count > 0) accelerators[name] = count;
  }
  return {
    cpuMillicores: Math.round(requestOf(spec, 'cpu') * 1_000),
    memoryBytes: Math.round(requestOf(spec, 'memory')),
    accelerators,
  };
}

function requestOf(spec: PodSpec, name: string): number {
  const overhead = quantity(spec.overhead?.[name]);
  // Pod-level requests replace those of the containers.
  const ofPod = spec.resources?.requests?.[name];
  if (ofPod !== undefined) return quantity(ofPod) + overhead;
  let sidecars = 0;
  let most = 0;
  for (const container of spec.initContainers ?? []) {
    const request = containerRequest(container, name);
    most = Math.max(most, sidecars + request);
    if (container.restartPolicy === 'Always') sidecars += request;
  }
  const running = (spec.containers ?? []).reduce((sum, each) => sum + containerRequest(each, name), sidecars);
  return Math.max(most, running) + overhead;
}

/** Requests default to the limits. */
function containerRequest({ resources }: Container, name: string): number {
  return quantity(resources?.requests?.[name] ?? resources?.limits?.[name]);
}

function quantity(text: string | number | undefined): number {
  return text === undefined ? 0 : (parseQuantity(text) ?? 0);
}
