import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant } from '../invariants/invariant.ts';
import { Claim, Instance, Machine, Secret, Snapshot, Volume } from '../kubevirt/kinds.ts';
import { isOf } from '../scenario/stored-objects.ts';

const OWN_GROUPS = ['pelotech.ot/', 'crd.pelotech.ot/'];
const KINDS = [Machine, Instance, Volume, Claim, Snapshot, Secret];

/**
 * Distinguishes the operator's objects from foreign ones by their owner references, and checks that the operator does
 * not change foreign objects.
 */
export class Foreign {
  /** UIDs of objects that belonged to the operator when they were last stored. */
  readonly #ours = new Set<string>();

  constructor(server: ApiServer) {
    server.listen(({ resource, after }) => {
      if (after === undefined || !KINDS.some((kind) => isOf(resource, kind))) return;
      const { uid = '' } = after.object.metadata;
      if (this.#isOwned(after.object)) this.#ours.add(uid);
      else this.#ours.delete(uid);
    });
  }

  /**
   * Whether the object belongs to a VirtualMachine or a VMDiskImage of the operator: directly, or through another
   * object, such as a DataVolume or a KubeVirt VirtualMachine.
   */
  isOurs({ metadata: { uid = '' } }: StoredObject): boolean {
    return this.#ours.has(uid);
  }

  readonly invariant: Invariant = {
    name: 'foreign objects are never touched',
    watch: ({ server, traffic }, violated) =>
      server.listen(({ resource, key, before, after }) => {
        if (traffic.arriving === undefined || before === undefined) return;
        if (!KINDS.some((kind) => isOf(resource, kind)) || this.#isOwned(before.object)) return;
        violated(`${resource.kind.kind} ${key} is ${after === undefined ? 'deleted' : 'changed'}`);
      }),
  };

  #isOwned({ metadata: { ownerReferences = [] } }: StoredObject): boolean {
    return ownerReferences.some(
      ({ apiVersion, uid }) =>
        OWN_GROUPS.some((group) => apiVersion.startsWith(group)) || this.#ours.has(uid),
    );
  }
}
