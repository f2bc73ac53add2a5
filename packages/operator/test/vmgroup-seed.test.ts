import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { field } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { page, runCommands } from './doc-commands.ts';
import { playVmGroupTutorial } from './vmgroup-tutorial.ts';
import { install, ready, type WithVcenter } from './with-vcenter.ts';

/* Tests the tutorial that VmGroup is based on, and the commands of docs/vmgroup.md. */

let env: WithVcenter;
beforeAll(async () => {
  env = await install();
});
afterAll(() => env[Symbol.asyncDispose]());

test('the commands of docs/vmgroup.md print the documented output', async () => {
  expect(await runCommands(page('vmgroup.md'), env.kubectl)).toBe(6);
  expect(await env.machines()).toEqual([]);
  await env.kubectl('delete', 'namespace', 'team-a');
});

test('the commands of the tutorial print the documented output', async () => {
  await playVmGroupTutorial(env.controlPlane.cluster, env.vcenter);
  expect(await env.vcsim.control.sessions()).toHaveLength(2); // the sessions of the operator and of this test
});

describe('common errors of the tutorial', () => {
  test('the error about a missing environment variable names the variable', async () => {
    expect(
      await startError({ KUBECONFIG: env.controlPlane.cluster.kubeconfig }, '--controllers=vmgroup'),
    ).toBe(
      'vmwright: VC_HOST is not set; set it to the name or address of vCenter, such as vcenter.example.com, or disable VmGroups with --controllers=-vmgroup\n',
    );
  });

  test('the error about a missing kubeconfig names the file', async () => {
    const message = await startError(
      { KUBECONFIG: '/nowhere/config', VC_HOST: 'vc', VC_USER: 'u', VC_PASS: 'p' },
      '--controllers=vmgroup',
    );
    expect(message).toMatch(/^vmwright: .*\/nowhere\/config/);
  });

  test('the message about an untrusted certificate names the settings to change; -insecure accepts the certificate', async () => {
    await using other = await install({ env: { VC_CA: '' } });
    await other.group('web', { replicas: 1 });
    const waiting = await other.until('web', (group) => field(ready(group), 'reason') === 'VcenterUntrusted');
    expect(field(waiting, 'status', 'lastMessage')).toBe(
      "the certificate of vCenter 'default' is not trusted; set its CA (VC_CA) or its thumbprint (VC_THUMBPRINT), or pass --insecure to skip the verification",
    );
    const vcsim = { password: 'Admin!23' };
    await using insecure = await install({ vcsim, env: { VC_CA: '' }, args: ['-insecure'] });
    await insecure.group('web', { replicas: 1 });
    await insecure.running('web', 1);
    expect(await readFile(insecure.operator.log, 'utf8')).not.toContain('Admin!23');
  });
});

/** Runs the operator, which must fail to start, and returns its error output. */
async function startError(
  variables: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<string> {
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
  const { PATH = '' } = process.env;
  try {
    await promisify(execFile)(process.execPath, [main, 'run', ...args], { env: { PATH, ...variables } });
  } catch (error) {
    return String(field(error, 'stderr')).replace(/^\(node:.*\n.*\n/, '');
  }
  throw new Error('the operator has started');
}
