import { same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Cloud } from '../cloud/cloud.ts';
import type { CloudServer } from '../cloud/server.ts';
import { LONGEST_LAG_MS } from '../cloud/simulated.ts';
import { deletedUids } from '../invariants/garbage.ts';
import type { Invariant } from '../invariants/invariant.ts';
import { objectOf } from '../invariants/machines.ts';
import {
  conditionsOf,
  countOf,
  isForged,
  isOrphaned,
  mayRecreate,
  onVmChange,
  opStatusOf,
  recreatedAtOf,
  vmIdOf,
} from './objects.ts';
import { ownerIn, serversOf } from './outside.ts';
import { isCreate, ownerAsked } from './requests.ts';

/* What is promised of VMs beyond what is promised of all objects that stand for something outside. */

/** An id is given once. It is given up only where the user has asked for it and the machine is truly gone. */
export function vmIdStays(cloud: Cloud): Invariant {
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
        if (was === is || isForged(before, after)) return;
        const { name, uid } = after.metadata;
        if (is !== undefined && made.get(is) !== uid)
          violated(`${name} has ${is}, which was not made for it`);
        if (was === undefined) return;
        // One that was never its own may be given up at any time, for its own or for none.
        if (made.get(was) !== uid) return;
        if (is !== undefined) violated(`${name} had ${was} and has ${is}`);
        if (!mayRecreate(before)) violated(`${name} has lost ${was}, and nobody has asked for another`);
        if (cloud.servers.get(was) !== undefined) violated(`${name} has given up ${was}, which is there`);
        if (countOf(after, 'recreations') !== countOf(before, 'recreations') + 1)
          violated(`${name} has given up ${was} without counting it`);
      });
    },
  };
}

/** The shortest pause before a second machine is made anew; it doubles with each, up to the longest. */
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [10_000, 300_000];

/** By the times that were stored: the clocks of those who wait may jump. */
export const madeAnewEverLater: Invariant = {
  name: 're-creation of machines backs off',
  watch: (truth, violated) =>
    onVmChange(truth, (before, after) => {
      if (before === undefined || after === undefined) return;
      const count = countOf(before, 'recreations');
      if (count === 0 || countOf(after, 'recreations') === count) return;
      const pausedMs = recreatedAtOf(after) - recreatedAtOf(before);
      const leastMs = Math.min(SHORTEST_PAUSE_MS * 2 ** (count - 1), LONGEST_PAUSE_MS);
      if (Number.isNaN(pausedMs) || (pausedMs >= 0 && pausedMs < leastMs))
        violated(`${after.metadata.name} is given its machine ${count + 1} after ${pausedMs} ms`);
    }),
};

/**
 * From the moment at which its deletion begins, the machine of an object that is there to stay is lost; but for one that
 * has failed and for which another was asked for. An object that is missing after a restore is wanted, too.
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
          // One that failed may have been on its way out, for another, when a restore took its object away.
          if (!deleted.has(owner) && before?.state !== 'failed')
            violated(`${before?.id} of ${owner} is deleted, which was never deleted itself`);
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
 * What was never made for an object of ours, or was let go, is neither deleted nor made ours. A machine whose marks a
 * stranger has changed is still its object's.
 */
export function foreignVmsUntouched(cloud: Cloud): Invariant {
  return {
    name: 'foreign machines are never touched',
    watch: (_, violated) => {
      const ours = new Set<string>();
      const letGo = new Set<string>();
      // To remove what had failed was asked for when it was; the request may land after the machine was let go.
      const isExcused = ({ id, state }: CloudServer) => letGo.has(id) && state === 'failed';
      cloud.servers.listen(({ before, after, cause }) => {
        if (cause !== 'request') return;
        const owner = after && ownerIn(after.labels);
        if (after !== undefined && before === undefined && owner !== undefined) ours.add(after.id);
        if (before === undefined) return;
        const wasMarked = ownerIn(before.labels) !== undefined;
        if (!ours.has(before.id) && !isExcused(before)) {
          if (after === undefined || after.state !== before.state) violated(`${before.id} is deleted`);
          else if (owner !== undefined) violated(`${before.id} is marked as a machine of ${owner}`);
        } else if (wasMarked && owner === undefined) {
          ours.delete(before.id);
          letGo.add(before.id);
        }
      });
    },
  };
}

/** Who asks for a machine has said so in the object, over the version that it has read, and has not written since. */
export const intentFirst: Invariant = {
  name: 'a machine is created only after the intent is stored',
  watch: (truth, violated) => {
    const intended = new Set<string>();
    onVmChange(truth, (before, after) => {
      const { landing } = truth.traffic;
      if (before === undefined || after === undefined || landing === undefined) return;
      const key = `${landing.sender} ${after.metadata.uid}`;
      if (countOf(after, 'attempts') > countOf(before, 'attempts')) intended.add(key);
      // That it is being deleted is told beside the work on it, which may be on its way to the cloud.
      else if (!same(before.status, after.status) && opStatusOf(after) !== 'Deleting') intended.delete(key);
    });
    truth.traffic.onSend((sent) => {
      if (isCreate(sent) && !intended.has(`${sent.sender} ${ownerAsked(sent)}`))
        violated(`${sent.sender} asks for a machine of ${ownerAsked(sent)} and has not said so`);
    });
  },
};

/**
 * An object goes when the cloud has no machine of it. One that came (or was marked) while the object was on its way out,
 * or so shortly before that a list may not show it, is left to garbage collection.
 */
export function machineGoesFirst(cloud: Cloud): Invariant {
  return {
    name: 'the machine is deleted before its object',
    watch: (truth, violated) => {
      const markedAt = marking(cloud);
      onVmChange(truth, (before, after) => {
        if (before === undefined || after !== undefined) return;
        const { uid = '', name, deletionTimestamp = '' } = before.metadata;
        const since = Date.parse(deletionTimestamp) - LONGEST_LAG_MS;
        for (const { id, state } of serversOf(cloud, uid))
          if (markedAt(id) < since) violated(`${name} (${uid}) is gone, and ${id} is ${state}`);
      });
    },
  };
}

/** Since when a server has been marked as its object's, in milliseconds since 1970. */
function marking(cloud: Cloud): (id: string) => number {
  const since = new Map<string, number>();
  cloud.servers.listen(({ atMs, before, after }) => {
    if (after === undefined) return;
    if (before === undefined || ownerIn(before.labels) !== ownerIn(after.labels)) since.set(after.id, atMs);
  });
  return (id) => since.get(id) ?? Number.POSITIVE_INFINITY;
}

/** The machine of an object that was let go stays, and only such a machine loses its marks. */
export function letGoOnlyWhenAsked(cloud: Cloud): Invariant {
  return {
    name: 'a machine is orphaned only when requested',
    watch: (truth, violated) => {
      const letGo = new Map<string, number>();
      const markedAt = marking(cloud);
      onVmChange(truth, (before, after) => {
        const { uid = '', deletionTimestamp } = after?.metadata ?? {};
        if (after === undefined || deletionTimestamp === undefined) return;
        if (before?.metadata.deletionTimestamp === undefined && isOrphaned(after))
          letGo.set(uid, Date.parse(deletionTimestamp) - LONGEST_LAG_MS);
      });
      cloud.servers.listen(({ before, after, cause }) => {
        const owner = before && ownerIn(before.labels);
        if (cause !== 'request' || owner === undefined || before === undefined || after === undefined) return;
        if (ownerIn(after.labels) !== owner) {
          const object = objectOf(truth, owner);
          if (object !== undefined && !isLeaving(object))
            violated(`${before.id} of ${owner} is not marked any more`);
        } else if (after.state === 'deleting' && before.state !== 'deleting') {
          const since = letGo.get(owner);
          // To have another in its place was asked for before it was let go.
          if (before.state === 'failed') return;
          if (since !== undefined && markedAt(before.id) < since)
            violated(`${before.id} of ${owner} is deleted, and was to stay`);
        }
      });
    },
  };
}

function isLeaving(object: StoredObject): boolean {
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
        if (is < was) violated(`${type} of ${after.metadata.name} had ${was} and has ${is}`);
      }
    }),
};

/** Within which everybody has noticed that a machine is gone, once all has healed: lists, retries and their time-outs. */
const NOTICED_MS = 180_000;

/** @param healedAt in virtual milliseconds; undefined before */
export function runningMeansRunning(cloud: Cloud, healedAt: () => number | undefined): Invariant {
  return {
    name: 'Running is reported only for a running machine',
    watch: (truth, violated) => {
      const ran = new Set<string | undefined>();
      cloud.servers.listen(({ after }) => {
        if (after?.state === 'running') ran.add(after.id);
      });
      onVmChange(truth, (before, after) => {
        if (after === undefined || opStatusOf(after) !== 'Running') return;
        // Whoever changes the vmId leaves the rest of the status as it was; the operator has to notice.
        if (isForged(undefined, after) && same(before?.status, after.status)) return;
        if (isForged(before, after)) return;
        const vmId = vmIdOf(after);
        const { name } = after.metadata;
        if (!ran.has(vmId)) violated(`${name} is said to run, and ${vmId} never did`);
        const isHealed =
          truth.simulation.schedule.now > (healedAt() ?? Number.POSITIVE_INFINITY) + NOTICED_MS;
        if (isHealed && cloud.servers.get(vmId ?? '') === undefined)
          violated(`${name} is said to run, and ${vmId} is long gone`);
      });
    },
  };
}

/** @param lines told of each line that is logged */
export function keyNotLogged(apiKey: string, lines: (tell: (line: string) => void) => void): Invariant {
  return {
    name: 'the API key is not logged',
    watch: (_, violated) =>
      lines((line) => {
        if (line.includes(apiKey)) violated(line);
      }),
  };
}
