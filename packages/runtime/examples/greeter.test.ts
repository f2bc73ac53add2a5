import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { field, freePort } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect, onTestFinished } from 'vitest';

const file = fileURLToPath(new URL('greeter.ts', import.meta.url));

test('docs/runtime.md and the README quote the greeter example, which has at most 40 lines', () => {
  const source = readFileSync(file, 'utf8');
  for (const page of ['../../../docs/runtime.md', '../README.md'])
    expect(readFileSync(new URL(page, import.meta.url), 'utf8'), page).toContain(
      `\`\`\`ts\n${source}\`\`\`\n`,
    );
  expect(source.trimEnd().split('\n').length).toBeLessThanOrEqual(40);
});

test('docs/runtime.md quotes the guarded example, which runs with its generated roles and webhooks', async ({
  cluster,
}) => {
  await using namespace = await cluster.namespace('guarded');
  const guarded = fileURLToPath(new URL('guarded.ts', import.meta.url));
  const docs = readFileSync(new URL('../../../docs/runtime.md', import.meta.url), 'utf8');
  expect(docs).toContain(`\`\`\`ts\n${readFileSync(guarded, 'utf8')}\`\`\`\n`);
  const env = { ...process.env, NAMESPACE: namespace.name, PORT: String(await freePort()) };
  await cluster.apply(execFileSync(process.execPath, [guarded, 'manifests'], { env, encoding: 'utf8' }));
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/guests.guarded.vmwright.dev']);
  const kubeconfig = await cluster.kubeconfigFor({ namespace: namespace.name, name: 'guarded' });
  const program = spawn(process.execPath, [guarded], {
    env: { ...env, KUBECONFIG: kubeconfig },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => void program.kill('SIGKILL'));
  const exited = once(program, 'exit');
  await cluster.waitFor(
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/guarded',
    (object) => field(object, 'webhooks', '0', 'clientConfig', 'caBundle') !== undefined,
  );

  const guest = (name: string) => ({
    apiVersion: 'guarded.vmwright.dev/v1',
    kind: 'Guest',
    metadata: { name, namespace: namespace.name },
    spec: { name },
  });
  const createMallory = async (...args: readonly string[]) => {
    const input = JSON.stringify(guest('mallory'));
    return (await cluster.tryKubectl(['create', ...args, '-f', '-'], { input })).stderr;
  };
  const denial = 'denied the request: mallory is not allowed as a guest';
  // Polled, because the API server learns of the new kind and the caBundle through watches.
  await expect.poll(() => createMallory('--dry-run=server')).toContain(denial);
  expect(await createMallory()).toContain(denial);
  await cluster.kubectl(['apply', '-f', '-'], { input: JSON.stringify(guest('ada')) });
  const path = `/apis/guarded.vmwright.dev/v1/namespaces/${namespace.name}/guests/ada`;
  await cluster.waitFor(path, (object) => field(object, 'status', 'welcome') === 'Welcome, ada!');

  program.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
  await cluster.kubectl([
    'delete',
    'validatingwebhookconfiguration/guarded',
    'crd/guests.guarded.vmwright.dev',
  ]);
});

test('the greeter example runs as a program with its CRD and stops on SIGTERM', async ({ cluster }) => {
  await using namespace = await cluster.namespace('greeter');
  const crd = execFileSync(process.execPath, [file, 'crd'], { encoding: 'utf8' });
  await cluster.apply(crd);
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/greetings.example.vmwright.dev']);
  const program = spawn(process.execPath, [file], {
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => void program.kill('SIGKILL'));
  const exited = once(program, 'exit');

  const metadata = { name: 'first', namespace: namespace.name };
  const greeting = {
    apiVersion: 'example.vmwright.dev/v1',
    kind: 'Greeting',
    metadata,
    spec: { name: 'World' },
  };
  // Polled, because kubectl finds a new kind only some time after the API server has begun to serve it.
  const apply = () => cluster.tryKubectl(['apply', '-f', '-'], { input: JSON.stringify(greeting) });
  await expect.poll(async () => (await apply()).stdout).toContain('greeting.example.vmwright.dev/first');
  const path = `/apis/example.vmwright.dev/v1/namespaces/${namespace.name}/greetings/first`;
  await cluster.waitFor(path, (object) => field(object, 'status', 'text') === 'Hello, World!');
  const printed = await cluster.kubectl(['-n', namespace.name, 'get', 'greetings']);
  expect(printed.stdout).toMatch(/^NAME +TEXT\nfirst +Hello, World!$/m);
  const empty = await cluster.tryKubectl(['apply', '-f', '-'], {
    input: JSON.stringify({ ...greeting, spec: { name: '' } }),
  });
  expect(empty.stderr).toContain('spec.name in body should be at least 1 chars long');

  program.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
  await cluster.kubectl(['delete', 'crd', 'greetings.example.vmwright.dev']);
});
