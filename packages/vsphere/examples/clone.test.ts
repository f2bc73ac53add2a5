import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startVcsim } from '@vmwright/testbed';
import { expect, test } from 'vitest';

const file = fileURLToPath(new URL('clone.ts', import.meta.url));

function run(env: NodeJS.ProcessEnv): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [file], { env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}

test('docs/vsphere.md contains the example program, which has at most 40 lines', () => {
  const docs = readFileSync(new URL('../../../docs/vsphere.md', import.meta.url), 'utf8');
  const source = readFileSync(file, 'utf8');
  expect(docs).toContain(`\`\`\`ts\n${source}\`\`\`\n`);
  expect(source.trimEnd().split('\n').length).toBeLessThanOrEqual(40);
});

test('the example program clones a template, destroys the clone, and prints the message of an error', async () => {
  await using vcsim = await startVcsim();
  const env = {
    VC_HOST: vcsim.host,
    VC_USER: vcsim.username,
    VC_PASS: vcsim.password,
    POOL: 'DC0_C0',
    VC_THUMBPRINT: new X509Certificate(vcsim.ca).fingerprint256,
  };
  const success = await run({ ...env, TEMPLATE: 'DC0_C0_RP0_VM0' });
  expect(success).toEqual({ code: 0, output: expect.stringMatching(/^4 machines\nhello is vm-\d+\n$/) });
  const calls = await vcsim.control.calls();
  expect(calls).toMatchObject({ CloneVM_Task: 1, Destroy_Task: 1, Login: 1, Logout: 1 });

  const failure = await run({ ...env, TEMPLATE: 'nope' });
  expect(failure).toEqual({ code: 1, output: "4 machines\ntemplate 'nope' not found in datacenter 'DC0'\n" });
  expect(await vcsim.control.sessions()).toEqual([]);
});
