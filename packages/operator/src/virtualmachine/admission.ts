import { type AdmissionRules, allow, type Caches, deny } from '@vmwright/runtime';
import { deletionPolicyOf, ORPHAN_IN_FOREGROUND, POLICY_CHANGED } from '../annotations.ts';
import { foregroundProblem } from '../kubevirt/deletion.ts';
import { addressKeys, conflictMessage, findAddressConflict } from './addresses.ts';
import { VirtualMachine } from './resource.ts';
import { changedNamesMessage, collisionMessage, userNamesOf } from './user-names.ts';

/**
 * Returns the admission rules for the addresses, user names and deletion policy of VirtualMachines. Only the parts that
 * a request changes are checked. So a VirtualMachine that has become invalid can still be changed and deleted. The
 * caches may be outdated, so the webhook may accept an address that is in use. The controller then reports the
 * conflict.
 * @param caches undefined if only the manifests of the rules are needed
 */
export function admitVirtualMachines(caches: Caches | undefined): AdmissionRules<VirtualMachine> {
  return {
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    matchConditions: [
      {
        name: 'spec-or-deletion-policy-changed',
        expression: `request.operation != "UPDATE" || object.spec != oldObject.spec || ${POLICY_CHANGED}`,
      },
      {
        name: 'orphan-in-foreground',
        expression: `request.operation != "DELETE" || (${ORPHAN_IN_FOREGROUND})`,
      },
    ],
    validate: (vm, request) => {
      if (request.operation === 'DELETE') {
        const problem = foregroundProblem(vm, request.propagation);
        return problem === undefined ? allow() : deny(problem);
      }
      const { before } = request;
      if (vm.metadata.deletionTimestamp !== undefined) return allow();
      const policy = deletionPolicyOf(vm);
      if (typeof policy === 'object' && isChanged(vm, before, (each) => each.metadata.annotations))
        return deny(policy.problem);
      if (caches !== undefined && isChanged(vm, before, addressKeys)) {
        const conflict = findAddressConflict(vm, caches.get(VirtualMachine), () => true);
        if (conflict !== undefined) return deny(conflictMessage(vm, conflict));
      }
      if (!isChanged(vm, before, (each) => each.spec.users)) return allow();
      const names = userNamesOf(vm);
      const collision = collisionMessage(names);
      return collision === undefined ? allow(...warningsOf(vm, changedNamesMessage(names))) : deny(collision);
    },
  };
}

function warningsOf(
  { spec: { users = [] } }: VirtualMachine,
  changed: string | undefined,
): readonly string[] {
  const isPlain = users.some(({ plain_text_passwd }) => plain_text_passwd !== undefined);
  const plain =
    'spec.users: plain_text_passwd is readable by everyone who can read the VirtualMachine. Use passwordSecretRef instead';
  return [...(changed === undefined ? [] : [`spec.users: ${changed}`]), ...(isPlain ? [plain] : [])];
}

/** Whether a request changes a part of the object; true for a new object. */
function isChanged(
  vm: VirtualMachine,
  before: VirtualMachine | undefined,
  part: (vm: VirtualMachine) => unknown,
): boolean {
  return before === undefined || JSON.stringify(part(before)) !== JSON.stringify(part(vm));
}
