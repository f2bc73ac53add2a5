import { parseDuration } from '../../settings/duration.ts';
import type { NodeClaim } from '../kinds.ts';
import { BEGUN, NOTHING_PLANNED, type Planned } from './planned.ts';
import { parseRfc3339 } from './times.ts';

/**
 * Reads when Karpenter replaces a node: at the creation of its NodeClaim plus `spec.expireAfter`. While a NodeClaim is
 * being deleted, its maintenance has begun, because Karpenter removes the node.
 */
export function karpenterMaintenance({ metadata, spec }: NodeClaim): Planned {
  const source = `expireAfter of NodeClaim ${metadata.name}`;
  if (metadata.deletionTimestamp !== undefined)
    return {
      ...NOTHING_PLANNED,
      maintenance: [{ startsAt: BEGUN, source: `deletion of NodeClaim ${metadata.name}` }],
    };
  const expireAfter = spec?.expireAfter ?? 'Never';
  if (expireAfter === 'Never') return NOTHING_PLANNED;
  const [createdAt, ms] = [parseRfc3339(metadata.creationTimestamp ?? ''), parseDuration(expireAfter)];
  if (createdAt === undefined || ms === undefined)
    return {
      ...NOTHING_PLANNED,
      unknown: [
        `NodeClaim ${metadata.name}: spec.expireAfter is "${expireAfter}"; it must be a duration such as 720h, or Never`,
      ],
    };
  return { ...NOTHING_PLANNED, maintenance: [{ startsAt: createdAt + ms, source }] };
}
