import type { Labels } from '@vmwright/cloud';
import type { Cloud } from '../cloud/cloud.ts';
import type { CloudServer } from '../cloud/server.ts';
import type { ExternalResource, ExternalResources } from '../invariants/external-resources.ts';
import { CLUSTER } from './program.ts';

/** Ownership labels. Not imported from the operator, so that a change there does not also change the check. */
const CLUSTER_LABEL = 'vmwright.dev/cluster';
const OWNER_LABEL = 'vmwright.dev/uid';

/** Returns the UID of the VM that a managed server belongs to. */
export function ownerIn(labels: Labels): string | undefined {
  return labels[CLUSTER_LABEL] === CLUSTER ? labels[OWNER_LABEL] : undefined;
}

/** Whether the owner label has this UID, regardless of the cluster label. */
export function isLabelledFor(labels: Labels, uid: string | undefined): boolean {
  return labels[OWNER_LABEL] === uid;
}

/** Cluster label of another cluster. */
export const ELSEWHERE: Labels = { [CLUSTER_LABEL]: 'another' };

/** Labels of a server that another cluster manages. */
export function foreignLabels(uid: string): Labels {
  return { ...ELSEWHERE, [OWNER_LABEL]: uid };
}

/** Labels of a server with the cluster label but no owner. */
export const UNOWNED: Labels = { [CLUSTER_LABEL]: CLUSTER };

/** Returns the servers of a VM. */
export function serversOf(cloud: Cloud, uid: string): readonly CloudServer[] {
  return [...cloud.servers.all()].filter(({ labels }) => ownerIn(labels) === uid);
}

/**
 * Cloud model as the invariants see it. Reports only changes by API requests. Other changes come from the machines
 * themselves or from third parties, not from the controller.
 */
export function externalResourcesOf(cloud: Cloud): ExternalResources {
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

function resourceOf({ id, labels, state }: CloudServer): ExternalResource {
  return { id, owner: ownerIn(labels), deleting: state === 'deleting' };
}
