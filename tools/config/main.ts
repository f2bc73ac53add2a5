/**
 * Part of `make generate`: writes the manifests in config/ from the operator's declarations. With `--check`, part of `make check`:
 * fails if they are out of date.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { manifests } from '@vmwright/operator';
import { manifestYaml } from '@vmwright/runtime';

const FOLDER = fileURLToPath(new URL('../../config/', import.meta.url));
const HEADER = '# Written by `make generate` from packages/operator. Do not edit.\n';

/** Documentation address (RFC 5737), which allows no traffic until the user replaces it. */
const NO_API_SERVER = '192.0.2.1/32';
const REPLACE = `# Replace ${NO_API_SERVER} by the addresses from which your API servers call webhooks, or print it with
# \`vmwright manifests --api-servers=<CIDR>,…\` (docs/endpoints.md).
`;

const { crds, rbac, webhooks, networkPolicies } = manifests({
  namespace: 'vmwright-system',
  apiServers: [NO_API_SERVER],
});
const files = new Map<string, string>();
for (const crd of crds) files.set(`crd/${crd.metadata.name}.yaml`, HEADER + (await manifestYaml([crd])));
files.set('rbac/vmwright.yaml', HEADER + (await manifestYaml(rbac)));
files.set('webhook/vmwright.yaml', HEADER + (await manifestYaml(webhooks)));
files.set('network-policy/vmwright.yaml', HEADER + REPLACE + (await manifestYaml(networkPolicies)));

const isCheck = process.argv[2] === '--check';
for (const folder of ['crd', 'network-policy', 'rbac', 'webhook']) {
  mkdirSync(`${FOLDER}${folder}`, { recursive: true });
  for (const name of readdirSync(`${FOLDER}${folder}`))
    if (!files.has(`${folder}/${name}`))
      report(`config/${folder}/${name} is not a generated file; remove it`);
}
for (const [path, text] of files) {
  if (!isCheck) writeFileSync(`${FOLDER}${path}`, text);
  else if (committed(path) !== text)
    report(`config/${path} is out of date; run \`make generate\` and commit the result`);
}

function committed(path: string): string {
  try {
    return readFileSync(`${FOLDER}${path}`, 'utf8');
  } catch {
    return '';
  }
}

function report(problem: string): void {
  console.error(problem);
  process.exitCode = 1;
}
