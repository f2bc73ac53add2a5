import { type Client, ForbiddenError, ignoreNotFound, Lease } from '@vmwright/runtime';
import { NAME } from '../declarations.ts';

/** Which replica of the operator leads, according to the Lease. */
export interface Leader {
  /** Identity of the holder of the Lease, even if the Lease has expired; undefined if no holder is known. */
  readonly holder?: string;
  /** Time of the last renewal, in milliseconds since 1970. */
  readonly renewedAt?: number;
  /** Whether the Lease has expired: its holder has stopped without releasing it. */
  readonly isExpired: boolean;
  /** Why the Lease could not be read. */
  readonly problem?: string;
}

/** @param now milliseconds since 1970 */
export async function readLeader(client: Client, namespace: string, now: number): Promise<Leader> {
  try {
    const lease = await ignoreNotFound(client.get(Lease, { namespace, name: NAME }));
    if (lease === undefined)
      return { isExpired: false, problem: `the Lease ${namespace}/${NAME} does not exist` };
    return leaderOf(lease, now);
  } catch (error) {
    if (!(error instanceof ForbiddenError)) throw error;
    return { isExpired: false, problem: `no permission to read the Lease ${namespace}/${NAME}` };
  }
}

/** Clocks of machines differ, so a Lease counts as expired only after this additional time. */
const SKEW_MS = 5_000;

export function leaderOf({ spec = {} }: Lease, now: number): Leader {
  const holder = spec.holderIdentity || undefined;
  const renewedAt = Date.parse(spec.renewTime ?? '');
  const isExpired = renewedAt + (spec.leaseDurationSeconds ?? 15) * 1_000 + SKEW_MS < now;
  return {
    ...(holder !== undefined && { holder }),
    ...(!Number.isNaN(renewedAt) && { renewedAt }),
    isExpired: holder !== undefined && isExpired,
  };
}
