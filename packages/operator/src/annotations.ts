import type { KubeObject } from '@vmwright/runtime';

/* What users say about an object of any kind, beside its spec. */

const PAUSED = 'vmwright.dev/paused';
const DELETION_POLICY = 'vmwright.dev/deletion-policy';

/** `"true"`: what was lost outside is made anew. */
export const RECREATE = 'vmwright.dev/recreate';

/** Whether it is to be left as it is, for the time being. */
export function isPaused({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[PAUSED] === 'true';
}

/** Whether what it stands for stays when it is deleted. */
export function isOrphaned({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[DELETION_POLICY] === 'Orphan';
}
