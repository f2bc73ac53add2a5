/**
 * Part of `make generate`: writes the manifests in config/ and the templates in charts/vmwright from the operator's declarations. With
 * `--check`, part of `make check`: fails if they are out of date.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manifests } from '@vmwright/operator';
import { chartFiles } from './chart.ts';
import { kustomizeFiles } from './kustomize.ts';
import { monitoringFiles } from './monitoring.ts';
import { valuesSchema } from './values-schema.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HEADER = '# Written by `make generate` from packages/operator. Do not edit.\n';

const files = new Map([
  ...(await kustomizeFiles((options) => manifests({ namespace: 'vmwright-system', ...options }))),
  ...(await chartFiles((options) => manifests({ namespace: '{{ $.Release.Namespace }}', ...options }))),
  ...(await monitoringFiles(ROOT)),
  ['charts/vmwright/values.schema.json', valuesSchema()] as const,
]);

/** Paths at which all files are generated. */
const GENERATED = [
  'config/{crd,network-policy,rbac,webhook,grafana}/**/*.yaml',
  'config/overlays/{vm,vmgroup,kubevirt,gpuinfo,namespaces}/*',
  'charts/vmwright/templates/{crds,rbac,user-roles,webhooks}*',
  'charts/vmwright/files/**/*.*',
];

const isCheck = process.argv[2] === '--check';
for (const path of globSync(GENERATED, { cwd: ROOT }))
  if (!files.has(path)) report(`${path} is not a generated file; remove it`);
for (const [path, text] of files) {
  const content = path.endsWith('.json') ? text : HEADER + text;
  if (isCheck) {
    if (committed(path) !== content)
      report(`${path} is out of date; run \`make generate\` and commit the result`);
    continue;
  }
  mkdirSync(dirname(`${ROOT}${path}`), { recursive: true });
  writeFileSync(`${ROOT}${path}`, content);
}

function committed(path: string): string {
  try {
    return readFileSync(`${ROOT}${path}`, 'utf8');
  } catch {
    return '';
  }
}

function report(problem: string): void {
  console.error(problem);
  process.exitCode = 1;
}
