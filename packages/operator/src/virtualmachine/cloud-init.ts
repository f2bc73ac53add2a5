import { stringify } from 'yaml';
import { plainAddress } from './addresses.ts';
import { macAddress } from './identity.ts';
import type { VirtualMachine } from './resource.ts';
import { userNamesOf } from './user-names.ts';

/** Data of the Secret that cloud-init in the guest reads. */
export interface CloudInit {
  readonly userdata: string;
  /** Undefined without interfaces: the guest then uses DHCP on the pod network. */
  readonly networkdata?: string;
}

/**
 * Quotes every string value. cloud-init reads YAML 1.1, which reads some unquoted texts (`on`, `1_000`, `12:30`) as
 * booleans, numbers or times.
 */
const QUOTED = { lineWidth: 0, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' } as const;

/**
 * Returns the cloud-init data of a VirtualMachine.
 * @param hashes hash of each user's password, in the order of the spec; undefined for users without a password
 */
export function cloudInitOf(vm: VirtualMachine, hashes: readonly (string | undefined)[]): CloudInit {
  const { users = [], interfaces = [] } = vm.spec;
  const { names } = userNamesOf(vm);
  const accounts = users.map(({ name, lock_passwd = true, sudo, groups }, i) => {
    const passwd = hashes[i];
    return {
      name: names[i] ?? name,
      ...(passwd !== undefined && { passwd }),
      lock_passwd,
      ...(sudo !== undefined && { sudo }),
      ...(groups !== undefined && { groups }),
    };
  });
  const userdata = `#cloud-config\n${accounts.length === 0 ? '{}\n' : stringify({ users: accounts }, QUOTED)}`;
  if (interfaces.length === 0) return { userdata };
  const ethernets = interfaces.map(({ ipAddress }, i) => {
    const macaddress = macAddress(vm, i);
    return [
      `eth${i}`,
      { match: { macaddress }, 'set-name': `eth${i}`, addresses: [cidr(ipAddress)] },
    ] as const;
  });
  const network = { version: 2, ethernets: Object.fromEntries(ethernets) };
  return { userdata, networkdata: stringify(network, QUOTED) };
}

function cidr(ipAddress: string): string {
  const [, prefix = ''] = ipAddress.split('/');
  return `${plainAddress(ipAddress)}/${prefix}`;
}
