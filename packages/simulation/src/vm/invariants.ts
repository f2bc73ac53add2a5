import { same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Cloud } from '../cloud/cloud.ts';
import type { CloudServer } from '../cloud/server.ts';
import { MAX_LAG_MS } from '../cloud/simulated.ts';
import { deletedUids } from '../invariants/garbage.ts';
import type { Invariant } from '../invariants/invariant.ts';
import { objectOf } from '../invariants/machines.ts';
import { ownerIn, serversOf } from './external-resources.ts';
import {
  conditionsOf,
  countOf,
  isEdited,
  isOrphaned,
  mayRecreate,
  onVmChange,
  opStatusOf,
  recreatedAtOf,
  vmIdOf,
} from './objects.ts';
import { isCreate, requestedOwner } from './requests.ts';

/* Invariants of VMs, in addition to those of all objects with external resources. */

/** A vmId is assigned once. It is removed only if the user requested re-creation and the server is gone. */
export function vmIdIsStable(cloud: Cloud): Invariant {
  return {
    name: 'vmId changes only through a requested re-creation',
    watch: (truth, violated) => {
      const made = new Map<string, string | undefined>();
      cloud.servers.listen(({ before, after }) => {
        if (before === undefined && after !== undefined) made.set(after.id, ownerIn(after.labels));
      });
      onVmChange(truth, (before, after) => {
        if (before === undefined || after === undefined) return;
        const [was, is] = [vmIdOf(before), vmIdOf(after)];
        if (was === is || isEdited(before, after)) return;
        const { name, uid } = after.metadata;
        if (is !== undefined && made.get(is) !== uid)
          violated(`vmId of ${name} is ${is}, a server that was not created for this VM`);
        if (was === undefined) return;
        // The operator may always remove the id of a server that was not created for this VM.
        if (made.get(was) !== uid) return;
        if (is !== undefined) violated(`vmId of ${name} changed from ${was} to ${is}`);
        if (!mayRecreate(before))
          violated(`${name} has dropped its vmId ${was}, but re-creation was not requested`);
        if (cloud.servers.get(was) !== undefined)
          violated(`${name} has dropped its vmId ${was}, but that server exists`);
        if (countOf(after, 'recreations') !== countOf(before, 'recreations') + 1)
          violated(`${name} has dropped its vmId ${was} without counting a re-creation`);
      });
    },
  };
}

/** Back-off before the second re-creation, and maximum back-off. The back-off doubles with each further re-creation. */
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [10_000, 300_000];

/**
 * Re-creations back off exponentially. The back-off is measured by the stored times, because the clocks of replicas can
 * jump.
 */
export const recreationBacksOff: Invariant = {
  name: 're-creation of machines backs off',
  watch: (truth, violated) =>
    onVmChange(truth, (before, after) => {
      if (before === undefined || after === undefined) return;
      const count = countOf(before, 'recreations');
      if (count === 0 || countOf(after, 'recreations') === count) return;
      const pausedMs = recreatedAtOf(after) - recreatedAtOf(before);
      const leastMs = Math.min(SHORTEST_PAUSE_MS * 2 ** (count - 1), LONGEST_PAUSE_MS);
      if (Number.isNaN(pausedMs) || (pausedMs >= 0 && pausedMs < leastMs))
        violated(`${after.metadata.name} is re-created for the ${count + 1}th time after ${pausedMs} ms`);
    }),
};

/**
 * The operator deletes the server of a VM only if the VM is being deleted, or if the server has failed and re-creation
 * was requested. If a restore of etcd has removed a VM, the operator must keep the VM's server.
 */
export function noWantedVmDeleted(cloud: Cloud): Invariant {
  return {
    name: 'no wanted machine is deleted',
    watch: (truth, violated) => {
      const deleted = deletedUids(truth);
      cloud.servers.listen(({ before, after, cause }) => {
        const owner = before && ownerIn(before.labels);
        if (cause !== 'request' || owner === undefined || before?.state === 'deleting') return;
        if (after !== undefined && after.state !== 'deleting') return;
        const object = objectOf(truth, owner);
        if (object === undefined) {
          // The deletion of a failed server is not a violation: a restore of etcd may have removed the VM while the
          // operator replaced the server.
          if (!deleted.has(owner) && before?.state !== 'failed')
            violated(`${before?.id} of ${owner} is deleted, but the VM was never deleted`);
          return;
        }
        if (object.metadata.deletionTimestamp !== undefined) return;
        if (before?.state !== 'failed' || !mayRecreate(object))
          violated(`${before?.id} of ${object.metadata.name} (${owner}) is deleted`);
      });
    },
  };
}

/**
 * The operator deletes or adopts only servers that it created for a VM and has not orphaned. A server still belongs to
 * its VM after a third party has changed the labels of the server.
 */
export function foreignVmsUntouched(cloud: Cloud): Invariant {
  return {
    name: 'foreign machines are never touched',
    watch: (_, violated) => {
      const ours = new Set<string>();
      const orphaned = new Set<string>();
      // A request to delete a failed server may arrive after the server was orphaned.
      const isExcused = ({ id, state }: CloudServer) => orphaned.has(id) && state === 'failed';
      cloud.servers.listen(({ before, after, cause }) => {
        if (cause !== 'request') return;
        const owner = after && ownerIn(after.labels);
        if (after !== undefined && before === undefined && owner !== undefined) ours.add(after.id);
        if (before === undefined) return;
        const wasLabelled = ownerIn(before.labels) !== undefined;
        if (!ours.has(before.id) && !isExcused(before)) {
          if (after === undefined || after.state !== before.state) violated(`${before.id} is deleted`);
          else if (owner !== undefined) violated(`${before.id} is labelled as a machine of ${owner}`);
        } else if (wasLabelled && owner === undefined) {
          ours.delete(before.id);
          orphaned.add(before.id);
        }
      });
    },
  };
}

/**
 * Before a replica creates a server, it stores in the status that it intends to do so, with a resourceVersion
 * precondition. Between this write and the create request, it does not write the status again.
 */
export const intentFirst: Invariant = {
  name: 'a machine is created only after the intent is stored',
  watch: (truth, violated) => {
    const intended = new Set<string>();
    onVmChange(truth, (before, after) => {
      const { arriving } = truth.traffic;
      if (before === undefined || after === undefined || arriving === undefined) return;
      const key = `${arriving.sender} ${after.metadata.uid}`;
      if (countOf(after, 'attempts') > countOf(before, 'attempts')) intended.add(key);
      // Keeps the intent if the status becomes Deleting. The operator may write that status while an earlier reconcile
      // still has a create request in flight.
      else if (!same(before.status, after.status) && opStatusOf(after) !== 'Deleting') intended.delete(key);
    });
    truth.traffic.onSend((sent) => {
      if (isCreate(sent) && !intended.has(`${sent.sender} ${requestedOwner(sent)}`))
        violated(`${sent.sender} creates a machine of ${requestedOwner(sent)} without a stored intent`);
    });
  },
};

/**
 * A VM is removed only after all its servers in the cloud are gone. Exception: a server may outlive the VM if it was
 * created or labelled after the deletion request, or at most `MAX_LAG_MS` before, because the state that a list
 * shows may be that old. Garbage collection deletes such a server.
 */
export function machineDeletedFirst(cloud: Cloud): Invariant {
  return {
    name: 'the machine is deleted before its object',
    watch: (truth, violated) => {
      const labelledAt = labelTimes(cloud);
      onVmChange(truth, (before, after) => {
        if (before === undefined || after !== undefined) return;
        const { uid = '', name, deletionTimestamp = '' } = before.metadata;
        const since = Date.parse(deletionTimestamp) - MAX_LAG_MS;
        for (const { id, state } of serversOf(cloud, uid))
          if (labelledAt(id) < since) violated(`${name} (${uid}) is gone, but ${id} is ${state}`);
      });
    },
  };
}

/**
 * Returns a function that maps the id of a server to the time at which the server got its current owner label. The time
 * is in milliseconds since 1970.
 */
function labelTimes(cloud: Cloud): (id: string) => number {
  const since = new Map<string, number>();
  cloud.servers.listen(({ atMs, before, after }) => {
    if (after === undefined) return;
    if (before === undefined || ownerIn(before.labels) !== ownerIn(after.labels)) since.set(after.id, atMs);
  });
  return (id) => since.get(id) ?? Number.POSITIVE_INFINITY;
}

/**
 * If a VM is deleted with policy Orphan, its server is kept. The server of any other VM keeps its labels as long as the
 * VM exists.
 */
export function orphanedOnlyWhenRequested(cloud: Cloud): Invariant {
  return {
    name: 'a machine is orphaned only when requested',
    watch: (truth, violated) => {
      const orphaned = new Map<string, number>();
      const labelledAt = labelTimes(cloud);
      onVmChange(truth, (before, after) => {
        const { uid = '', deletionTimestamp } = after?.metadata ?? {};
        if (after === undefined || deletionTimestamp === undefined) return;
        if (before?.metadata.deletionTimestamp === undefined && isOrphaned(after))
          orphaned.set(uid, Date.parse(deletionTimestamp) - MAX_LAG_MS);
      });
      cloud.servers.listen(({ before, after, cause }) => {
        const owner = before && ownerIn(before.labels);
        if (cause !== 'request' || owner === undefined || before === undefined || after === undefined) return;
        if (ownerIn(after.labels) !== owner) {
          const object = objectOf(truth, owner);
          if (object !== undefined && !isTerminating(object))
            violated(`${before.id} of ${owner} has lost its labels`);
        } else if (after.state === 'deleting' && before.state !== 'deleting') {
          const since = orphaned.get(owner);
          // Not a violation: the request to replace a failed server may have been sent before the VM was orphaned.
          if (before.state === 'failed') return;
          if (since !== undefined && labelledAt(before.id) < since)
            violated(`${before.id} of ${owner} is deleted although its policy is Orphan`);
        }
      });
    },
  };
}

function isTerminating(object: StoredObject): boolean {
  return object.metadata.deletionTimestamp !== undefined && isOrphaned(object);
}

export const conditionsNeverGoBack: Invariant = {
  name: 'observedGeneration of conditions never goes back',
  watch: (truth, violated) =>
    onVmChange(truth, (before, after) => {
      if (before === undefined || after === undefined || before.status === after.status) return;
      const now = conditionsOf(after);
      for (const [type, { observedGeneration: was }] of conditionsOf(before)) {
        const is = now.get(type)?.observedGeneration ?? was;
        if (is < was)
          violated(`observedGeneration of ${type} of ${after.metadata.name} changed from ${was} to ${is}`);
      }
    }),
};

/**
 * Maximum time until the operator notices that a server is gone, after the faults have stopped. It includes lists,
 * retries and their timeouts.
 */
const NOTICED_MS = 180_000;

/** @param healedAt virtual time at which the faults stopped; undefined before that */
export function runningIsTrue(cloud: Cloud, healedAt: () => number | undefined): Invariant {
  return {
    name: 'Running is reported only for a running machine',
    watch: (truth, violated) => {
      const ran = new Set<string | undefined>();
      cloud.servers.listen(({ after }) => {
        if (after?.state === 'running') ran.add(after.id);
      });
      onVmChange(truth, (before, after) => {
        if (after === undefined || opStatusOf(after) !== 'Running') return;
        // Not checked right after a third party changed the vmId: until the operator corrects the status, the other
        // status fields describe the previous server.
        if (isEdited(undefined, after) && same(before?.status, after.status)) return;
        if (isEdited(before, after)) return;
        const vmId = vmIdOf(after);
        const { name } = after.metadata;
        if (!ran.has(vmId)) violated(`${name} is reported as Running, but ${vmId} never ran`);
        const isHealed =
          truth.simulation.schedule.now > (healedAt() ?? Number.POSITIVE_INFINITY) + NOTICED_MS;
        if (isHealed && cloud.servers.get(vmId ?? '') === undefined)
          violated(`${name} is reported as Running, but ${vmId} is long gone`);
      });
    },
  };
}

/** @param lines registers a listener for the log lines of all replicas */
export function keyNotLogged(apiKey: string, lines: (listener: (line: string) => void) => void): Invariant {
  return {
    name: 'the API key is not logged',
    watch: (_, violated) =>
      lines((line) => {
        if (line.includes(apiKey)) violated(line);
      }),
  };
}
