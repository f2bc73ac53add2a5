import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { cloudInitOf } from './cloud-init.ts';
import { PasswordReader, saltFor } from './passwords.ts';
import type { VirtualMachine } from './resource.ts';
import { sha512Crypt } from './sha512-crypt.ts';

const vm = (spec: Partial<VirtualMachine['spec']>): VirtualMachine => ({
  metadata: { namespace: 'work', name: 'demo', uid: 'u-1' },
  spec: {
    resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
    vmDiskImageRef: { name: 'base' },
    ...spec,
  },
});

test('cloud-init data contains the users with the hashes of their passwords', () => {
  const sudo = 'ALL=(ALL) NOPASSWD:ALL';
  const user = { name: 'demo user', plain_text_passwd: 'demo-pwd', lock_passwd: false, sudo, groups: 'sudo' };
  const { userdata, networkdata } = cloudInitOf(vm({ users: [user, { name: 'on' }] }), [
    '$6$salt$hash',
    undefined,
  ]);
  expect(userdata.startsWith('#cloud-config\n')).toBe(true);
  expect(parse(userdata)).toEqual({
    users: [
      { name: 'demo-user', passwd: '$6$salt$hash', lock_passwd: false, sudo, groups: 'sudo' },
      { name: 'on', lock_passwd: true },
    ],
  });
  // cloud-init reads YAML 1.1, in which an unquoted `on` is a boolean.
  expect(userdata).toContain('name: "on"');
  expect(userdata).not.toContain('demo-pwd');
  expect(networkdata).toBeUndefined();
});

test('the cloud-init data assigns the address of every interface by its MAC address', () => {
  const interfaces = [
    { network: 'a', ipAddress: '10.10.0.161/24' },
    { network: 'b', ipAddress: 'FD00:0::1/64' },
  ];
  const { networkdata = '' } = cloudInitOf(vm({ interfaces }), []);
  const mac = expect.stringMatching(/^02(:[0-9a-f]{2}){5}$/);
  const network = parse(networkdata);
  expect(network).toEqual({
    version: 2,
    ethernets: {
      eth0: { match: { macaddress: mac }, 'set-name': 'eth0', addresses: ['10.10.0.161/24'] },
      eth1: { match: { macaddress: mac }, 'set-name': 'eth1', addresses: ['fd00::1/64'] },
    },
  });
  expect(network.ethernets.eth0.match.macaddress).not.toBe(network.ethernets.eth1.match.macaddress);
  expect(cloudInitOf(vm({ interfaces }), []).networkdata).toBe(networkdata);
});

test('the cloud-init user data of a machine without users is empty', () => {
  expect(parse(cloudInitOf(vm({}), []).userdata)).toEqual({});
});

test('passwords are hashed with a salt that is derived from the UID and the user name', async () => {
  const secrets = new Map([['work/pw', { password: 'from-secret' }]]);
  const client = {
    get: async <T>() => {
      const [data] = secrets.values();
      const found: unknown = {
        metadata: { name: 'pw' },
        data: { password: Buffer.from(data?.password ?? '').toString('base64') },
      };
      return found as T;
    },
  };
  const reader = new PasswordReader();
  const users = [
    { name: 'a b', plain_text_passwd: 'plain' },
    { name: 'c', passwordSecretRef: { name: 'pw' } },
    { name: 'd' },
  ];
  const context = { client, signal: new AbortController().signal, now: () => 0 };
  const read = () => reader.read(vm({ users }), false, context);
  const expected = [
    sha512Crypt('plain', saltFor('u-1', 'a-b')),
    sha512Crypt('from-secret', saltFor('u-1', 'c')),
    undefined,
  ];
  expect(await read()).toEqual({ hashes: expected });
  expect(await read()).toEqual({ hashes: expected });
  const missing = [{ name: 'c', passwordSecretRef: { name: 'pw', key: 'other' } }];
  expect(await reader.read(vm({ users: missing }), false, context)).toEqual({
    problem: {
      reason: 'PasswordSecretMissing',
      message: 'The Secret work/pw has no key "other" with a password (users[].passwordSecretRef). Add it',
    },
  });
});
