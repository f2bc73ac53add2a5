/**
 * Writes the manifests in config/ and the templates in charts/vmwright from the operator's declarations;
 * `make generate` runs it. With `--check`, writes nothing and fails if they are out of date; `make check` runs it this
 * way.
 */
import { fileURLToPath } from 'node:url';
import { manifests } from '@vmwright/operator';
import { updateAll } from '../generated/update.ts';
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

/** Patterns for paths where every file is generated. Files there that are not generated any more are removed. */
const GENERATED = [
  'config/{crd,network-policy,rbac,webhook,grafana}/**/*.yaml',
  'config/overlays/{vm,vmgroup,kubevirt,gpuinfo,namespaces}/*',
  'charts/vmwright/templates/{crds,rbac,user-roles,webhooks}*',
  'charts/vmwright/files/**/*.*',
];

const content = (path: string, text: string) => (path.endsWith('.json') ? text : HEADER + text);
updateAll(new Map([...files].map(([path, text]) => [path, content(path, text)])), GENERATED);
