import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import type { ControllerName } from '../settings/controllers.ts';
import { VM } from '../vm/resource.ts';
import { checkedControllers } from './checks/checked-controllers.ts';
import { contains } from './checks/crds.ts';
import { accessesOf } from './checks/permissions.ts';
import { checkBundle } from './checks/webhooks.ts';
import { childrenOf } from './children.ts';
import { completionScript, wordsOf } from './completion.ts';
import { parseTarget } from './kinds.ts';
import { createProgram } from './program.ts';
import { Redactor } from './redact.ts';

test.each([
  ['vm/web', 'VM'],
  ['cvm/web', 'VM'],
  ['VmGroups/web', 'VmGroup'],
  ['vg/web', 'VmGroup'],
  ['virtualmachines.pelotech.ot/web', 'VirtualMachine'],
  ['vmdi/web', 'VMDiskImage'],
])('the target %s names an object of the kind %s', (text, kind) => {
  expect(parseTarget(text)).toMatchObject({ kind: { kind }, name: 'web' });
});

test.each([
  ['web', '"web" is not an object; write kind/name, such as vm/web'],
  ['vm/', '"vm/" is not an object'],
  ['vm/a/b', '"vm/a/b" is not an object'],
  ['vmgruop/web', '"vmgruop" is not a kind of vmwright (did you mean "vmgroup"?); the kinds are vm, vmgroup'],
])('the target %s is rejected', (text, message) => {
  expect(() => parseTarget(text)).toThrow(message);
});

test('an unknown command is rejected with a suggestion', () => {
  const program = createProgram('vmwright');
  expect(() => program.parse(['statsu'], { from: 'user' })).toThrow(CommanderError);
  expect(() => program.parse(['statsu'], { from: 'user' })).toThrow(/Did you mean status/);
});

test('completion scripts contain every command and its flags', () => {
  const program = createProgram('vmwright');
  const words = wordsOf(program);
  expect(words.map(({ path }) => path)).toEqual([
    ...['', 'run', 'manifests', 'check', 'orphans', 'mirror', 'mirror verify', 'status', 'describe', 'why'],
    ...['bundle', 'version', 'completion'],
  ]);
  expect(words.find(({ path }) => path === 'orphans')?.words).toEqual(
    expect.arrayContaining(['--delete', '--yes', '--cloud-url', '--context']),
  );
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = completionScript(program, shell);
    for (const word of ['orphans', 'vm-refresh']) expect(script).toContain(word);
  }
});

test('a redactor removes guest data, credentials in URLs, and secrets, also where other texts repeat the secrets', () => {
  const redactor = new Redactor(['env-s3cret', undefined, '']);
  const machine = {
    metadata: {
      name: 'vm',
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"p":"canary-1"}' },
      managedFields: [{}],
    },
    spec: {
      users: [{ name: 'demo', plain_text_passwd: 'canary-1', lock_passwd: false }],
      passwordSecretRef: { name: 'creds', key: 'password' },
      userData: '#cloud-config\npassword: canary-2',
      env: [
        { name: 'VC_PASS', value: 'canary-3' },
        { name: 'REGION', value: 'west' },
      ],
      url: 'https://user:canary-4@host/x',
    },
  };
  redactor.learn(machine);
  expect(redactor.object(machine)).toEqual({
    metadata: {
      name: 'vm',
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '[redacted]' },
    },
    spec: {
      users: [{ name: 'demo', plain_text_passwd: '[redacted]', lock_passwd: false }],
      passwordSecretRef: { name: 'creds', key: 'password' },
      userData: '[redacted]',
      env: [
        { name: 'VC_PASS', value: '[redacted]' },
        { name: 'REGION', value: 'west' },
      ],
      url: 'https://[redacted]@host/x',
    },
  });
  const base64 = Buffer.from('canary-1').toString('base64');
  expect(redactor.text(`canary-1 ${base64} env-s3cret canary-3`)).toBe(
    '[redacted] [redacted] [redacted] [redacted]',
  );
});

test.each([
  ['postgres://app:pa@ss@db/x', 'postgres://[redacted]@db/x'],
  ['postgres://app:p#ss@db/x', 'postgres://[redacted]@db/x'],
  ['postgres://app:p?ss@db/x', 'postgres://[redacted]@db/x'],
  ["postgres://app:it's@db/x", 'postgres://[redacted]@db/x'],
  ['{"u":"postgres://app:p\\"w@db/x"}', '{"u":"postgres://[redacted]@db/x"}'],
  ['https://token@host/x', 'https://[redacted]@host/x'],
  ['{"url":"https://host:8443","mail":"a@b"}', '{"url":"https://host:8443","mail":"a@b"}'],
  ['{"url":"https://host","mail":"a@b.example"}', '{"url":"https://host","mail":"a@b.example"}'],
  ['https://host/a@b and c@d', 'https://host/a@b and c@d'],
])('a redactor turns %s into %s', (text, redacted) => {
  expect(new Redactor().text(text)).toBe(redacted);
});

test('children are found by their owner references, at every level', () => {
  const child = (name: string, owner: string) => ({
    kind: 'K',
    object: {
      metadata: {
        name,
        uid: name,
        ownerReferences: [{ apiVersion: 'v1', kind: 'K', name: owner, uid: owner }],
      },
    },
  });
  const all = [child('b', 'a'), child('c', 'b'), child('other', 'x')];
  expect(childrenOf({ metadata: { name: 'a', uid: 'a' } }, all)).toMatchObject([
    { object: { metadata: { name: 'b' } }, children: [{ object: { metadata: { name: 'c' } } }] },
  ]);
});

test('`vmwright check` checks every permission of a shipped role in each namespace in which the role is bound', () => {
  const everywhere = accessesOf('sys');
  const patch = { group: VM.group, resource: 'vms', subresource: 'status', verb: 'patch' };
  expect(everywhere).toContainEqual(patch);
  expect(everywhere).toContainEqual({
    group: 'coordination.k8s.io',
    resource: 'leases',
    name: 'vmwright',
    verb: 'patch',
    namespace: 'sys',
  });
  const limited = accessesOf('sys', ['a', 'b']);
  expect(
    limited.filter(({ subresource, resource }) => resource === 'vms' && subresource === 'status'),
  ).toEqual([
    { ...patch, namespace: 'a' },
    { ...patch, namespace: 'b' },
  ]);
});

test('`vmwright check` asks only for the permissions of the controllers that it checks', () => {
  const resources = accessesOf('sys', undefined, new Set(['vmgroup'])).map(({ resource }) => resource);
  expect(resources).toContain('vmgroups');
  for (const other of ['vms', 'virtualmachines', 'gpuinfoes']) expect(resources).not.toContain(other);
});

describe('the controllers that `vmwright check` checks', () => {
  const served = (...plurals: readonly string[]) => ({
    raw: async () => JSON.stringify({ resources: plurals.map((name) => ({ name })) }),
  });
  const off = (name: ControllerName) => ({ name, why: '', remedy: '' });
  const settings = { named: new Set<ControllerName>(), disabled: [off('vm')] };

  test('an enabled controller is checked if one of its CRDs is installed', async () => {
    expect(await checkedControllers(served('vms', 'vmgroups'), settings)).toEqual(new Set(['vmgroup']));
    const isOff = { ...settings, disabled: [off('vm'), off('vmgroup')] };
    expect(await checkedControllers(served('vmdiskimages', 'gpuinfoes'), isOff)).toEqual(
      new Set(['kubevirt', 'gpuinfo']),
    );
  });

  test('a controller without installed CRDs is checked if --controllers names it, its backend is set, or no CRD of any controller is installed', async () => {
    expect(await checkedControllers(served('gpuinfoes'), settings)).toEqual(new Set(['vmgroup', 'gpuinfo']));
    const named = new Set(['kubevirt'] as const);
    expect(await checkedControllers(served('vmgroups'), { ...settings, named })).toEqual(
      new Set(['vmgroup', 'kubevirt']),
    );
    expect(await checkedControllers(served(), settings)).toEqual(new Set(['vmgroup', 'kubevirt', 'gpuinfo']));
  });
});

test('an installed CRD matches the CRD of this vmwright version even if the API server has added fields', () => {
  const wanted = { versions: [{ name: 'v1', schema: { type: 'object' } }] };
  expect(contains({ versions: [{ name: 'v1', served: true, schema: { type: 'object' } }] }, wanted)).toBe(
    true,
  );
  expect(contains({ versions: [{ name: 'v1', schema: { type: 'string' } }] }, wanted)).toBe(false);
  expect(contains({ versions: [] }, wanted)).toBe(false);
});

test('the check of a CA bundle fails if the bundle contains no certificate', () => {
  expect(checkBundle('w', '', 0)).toMatchObject({
    state: 'failed',
    detail: 'has no CA certificate (caBundle)',
  });
});

test('`vmwright run` loads no code of other commands', () => {
  const source = join(import.meta.dirname, '..');
  const loaded = new Set<string>();
  const load = (file: string) => {
    if (loaded.has(file)) return;
    loaded.add(file);
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(
      /^(?:import|export|\}).* from '(\..*)';$/gm,
    ))
      if (path.endsWith('.ts')) load(join(dirname(file), path));
  };
  for (const file of ['main.ts', 'cli/run.ts']) load(join(source, file));
  const files = [...loaded].map((file) => relative(source, file));
  expect(files).toContain('operator.ts');
  expect(files.filter((file) => file.startsWith('cli/')).toSorted()).toEqual([
    ...['cli/options.ts', 'cli/program.ts', 'cli/run.ts'],
  ]);
  expect(files.filter((file) => /^mirror|yaml-file|^orphans|^manifests/.test(file))).toEqual([]);
});
