import type { Labels } from '@vmwright/cloud';
import type { Cloud } from '../cloud/cloud.ts';
import type { CloudServer } from '../cloud/server.ts';
import type { Outside, OutsideResource } from '../invariants/outside.ts';
import { CLUSTER } from './program.ts';

/** The labels by which a server is somebody's, in words of our own: the operator's must not be able to change both. */
const CLUSTER_LABEL = 'vmwright.dev/cluster';
const OWNER_LABEL = 'vmwright.dev/uid';

/** The UID of the object that a server of ours was made for. */
export function ownerIn(labels: Labels): string | undefined {
  return labels[CLUSTER_LABEL] === CLUSTER ? labels[OWNER_LABEL] : undefined;
}

/** Whether it carries an object's mark, whichever cluster's. */
export function isMarkedFor(labels: Labels, uid: string | undefined): boolean {
  return labels[OWNER_LABEL] === uid;
}

/** The mark of another cluster. */
export const ELSEWHERE: Labels = { [CLUSTER_LABEL]: 'another' };

/** Labels of a server of an object of another cluster. */
export function foreignLabels(uid: string): Labels {
  return { ...ELSEWHERE, [OWNER_LABEL]: uid };
}

/** A server that carries the cluster's mark, and no object's. */
export const UNOWNED: Labels = { [CLUSTER_LABEL]: CLUSTER };

/** The servers that were made for an object. */
export function serversOf(cloud: Cloud, uid: string): readonly CloudServer[] {
  return [...cloud.servers.all()].filter(({ labels }) => ownerIn(labels) === uid);
}

/**
 * The cloud as invariants look at it: of changes, those that somebody has asked for by a request. What machines do by
 * themselves, and what strangers do to them, is not the controller's.
 */
export function outsideOf(cloud: Cloud): Outside {
  return {
    *all() {
      for (const server of cloud.servers.all()) yield resourceOf(server);
    },
    listen: (listener) =>
      cloud.servers.listen(({ before, after, cause }) => {
        if (cause === 'request')
          listener({ before: before && resourceOf(before), after: after && resourceOf(after) });
      }),
  };
}

function resourceOf({ id, labels, state }: CloudServer): OutsideResource {
  return { id, owner: ownerIn(labels), leaving: state === 'deleting' };
}
