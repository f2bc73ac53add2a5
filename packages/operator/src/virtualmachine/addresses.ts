import type { ObjectCache, ObjectRef } from '@vmwright/runtime';
import { keyOf } from '@vmwright/runtime';
import type { VirtualMachine } from './resource.ts';

/** Index of VirtualMachines by network and address. */
export const ADDRESS_INDEX = 'virtualmachine-address';

/** A static address that a VirtualMachine cannot have, because it is taken on the same network. */
export interface AddressConflict {
  readonly address: string;
  /** NetworkAttachmentDefinition: `namespace/name`. */
  readonly network: string;
  /**
   * Metadata of the VirtualMachine that has the address: another one, or the same one if two of its own interfaces have
   * the address.
   */
  readonly holder: VirtualMachine['metadata'];
}

/** Returns the NetworkAttachmentDefinition of an interface. */
export function networkRef({ metadata }: VirtualMachine, network: string): ObjectRef & { namespace: string } {
  const cut = network.indexOf('/');
  return cut === -1
    ? { namespace: metadata.namespace ?? '', name: network }
    : { namespace: network.slice(0, cut), name: network.slice(cut + 1) };
}

/** Returns the address without its prefix length. All notations of an IPv6 address lead to the same result. */
export function plainAddress(ipAddress: string): string {
  const [address = ''] = ipAddress.split('/');
  if (!address.includes(':')) return address;
  const url = URL.parse(`http://[${address}]`);
  return url === null ? address : url.hostname.slice(1, -1);
}

/** Returns the keys of a VirtualMachine in the index of addresses, one per interface. */
export function addressKeys(vm: VirtualMachine): readonly string[] {
  return (vm.spec.interfaces ?? []).map(
    ({ network, ipAddress }) => `${keyOf(networkRef(vm, network))} ${plainAddress(ipAddress)}`,
  );
}

/**
 * Returns the first address conflict of the VirtualMachine; undefined if it has none.
 * @param wins whether another VirtualMachine with the same address on the same network keeps the address
 */
export function findAddressConflict(
  vm: VirtualMachine,
  machines: Pick<ObjectCache<VirtualMachine>, 'byIndex'>,
  wins: (other: VirtualMachine, address: string) => boolean,
): AddressConflict | undefined {
  const keys = addressKeys(vm);
  for (const [i, key] of keys.entries()) {
    const [network = '', address = ''] = key.split(' ');
    if (keys.indexOf(key) < i) return { address, network, holder: vm.metadata };
    for (const other of machines.byIndex(ADDRESS_INDEX, key)) {
      if (!isSame(vm.metadata, other.metadata) && wins(other, address))
        return { address, network, holder: other.metadata };
    }
  }
  return undefined;
}

/** Whether the conflict is with another VirtualMachine, and not between two interfaces of the same VirtualMachine. */
export function isHeldByOther({ metadata }: VirtualMachine, { holder }: AddressConflict): boolean {
  return !isSame(metadata, holder);
}

function isSame(a: ObjectRef, b: ObjectRef): boolean {
  return a.namespace === b.namespace && a.name === b.name;
}

/**
 * Returns the message about a conflict. The name of a VirtualMachine in another namespace is left out: it may be
 * secret.
 */
export function conflictMessage(vm: VirtualMachine, conflict: AddressConflict): string {
  const { address, network, holder } = conflict;
  if (!isHeldByOther(vm, conflict))
    return `spec.interfaces: two interfaces have the address ${address} on the network ${network}. Change one of them`;
  const by =
    holder.namespace === vm.metadata.namespace
      ? `the VirtualMachine "${holder.name}" in this namespace`
      : 'a VirtualMachine in another namespace';
  return `The address ${address} on the network ${network} is used by ${by}. Choose another address`;
}
