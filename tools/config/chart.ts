import { CONTROLLERS, type Manifests } from '@vmwright/operator';
import { type KubeObject, manifestYaml } from '@vmwright/runtime';
import { indent, webhookNames } from './kustomize.ts';
import { type GeneratedFiles, type ObjectsOf, partOf } from './parts.ts';

/** Action that stands for a watched namespace inside a `range` over all of them. */
const EACH = '{{ . }}';
const LABELS = 'LABELS';

/**
 * Returns the generated templates of the chart: CRDs, RBAC and webhooks, each inside the conditions under which it is installed.
 * @param objectsOf the operator's manifests, with the action `{{ $.Release.Namespace }}` as their namespace
 */
export async function chartFiles(objectsOf: ObjectsOf): Promise<GeneratedFiles> {
  const [everywhere, limited] = [objectsOf({}), objectsOf({ namespaces: [EACH] })];
  const each = CONTROLLERS.map((name) => [name, objectsOf({ controllers: new Set([name]) })] as const);
  const files = new Map<string, string>();
  const write = (name: string, text: string) =>
    void files.set(`charts/vmwright/templates/${name}.yaml`, text);
  for (const [name, { crds, userRoles }] of each) {
    const definitions = await Promise.all(crds.map(crdTemplate));
    write(`crds-${name}`, when(`and $.Values.crds.enabled ${has(name)}`, documents(definitions)));
    const roles = await Promise.all(userRoles.map(template));
    write(`user-roles-${name}`, when(`and $.Values.userRoles.enabled ${has(name)}`, documents(roles)));
  }
  const [anywhere, bound] = [Map.groupBy(everywhere.rbac, partOf), Map.groupBy(limited.rbac, partOf)];
  for (const [part, objects] of anywhere) {
    const text = await roleTemplates(objects, bound.get(part) ?? []);
    write(`rbac-${part}`, part === 'operator' ? text : when(has(part), text));
  }
  write(
    'webhooks',
    documents(await Promise.all(limited.webhooks.map((object) => webhookTemplate(object, each)))),
  );
  return files;
}

/** Returns the roles for all namespaces, or for the watched ones. Objects that do not depend on them are written once. */
async function roleTemplates(
  everywhere: readonly KubeObject[],
  limited: readonly KubeObject[],
): Promise<string> {
  const known = new Set(limited.map((object) => JSON.stringify(object)));
  const common = everywhere.filter((object) => known.has(JSON.stringify(object)));
  const shared = new Set(common.map((object) => JSON.stringify(object)));
  const rest = (objects: readonly KubeObject[]) =>
    Promise.all(objects.filter((object) => !shared.has(JSON.stringify(object))).map(boundTemplate));
  return documents([
    ...(await Promise.all(common.map(template))),
    `{{- if $.Values.watchNamespaces }}\n${documents(await rest(limited))}{{- else }}\n${documents(await rest(everywhere))}{{- end }}\n`,
  ]);
}

/** Returns the template of a role or binding; a RoleBinding in a watched namespace is repeated for each of them. */
async function boundTemplate(object: KubeObject): Promise<string> {
  const text = await template(object);
  return object.metadata.namespace === EACH
    ? `{{- range $.Values.watchNamespaces }}\n---\n${text}{{- end }}\n`
    : text;
}

async function crdTemplate(crd: KubeObject): Promise<string> {
  const isConverted = JSON.stringify(crd).includes('"strategy":"Webhook"');
  const { annotations = {}, ...metadata } = crd.metadata;
  const text = await template({
    ...crd,
    metadata: { ...metadata, annotations: { ...annotations, KEEP: '' } },
  });
  return text.replace(
    '    KEEP: ""\n',
    `    {{- include "vmwright.crdAnnotations" $ | nindent 4 }}\n${isConverted ? INJECTION : ''}`,
  );
}

const INJECTION = `    {{- if $.Values.certManager.enabled }}
    cert-manager.io/inject-ca-from: {{ $.Release.Namespace }}/vmwright-webhook
    {{- end }}
`;

/** Returns the template of a webhook configuration. Each webhook is inside the condition of its controller. */
async function webhookTemplate(
  configuration: KubeObject,
  each: readonly (readonly [string, Manifests])[],
): Promise<string> {
  const ownerOf = (webhook: string) =>
    each.find(([, { webhooks }]) => webhooks.flatMap(webhookNames).includes(webhook))?.[0] ?? '';
  const owners = new Set(webhookNames(configuration).map(ownerOf));
  const webhooks =
    'webhooks' in configuration && Array.isArray(configuration.webhooks) ? configuration.webhooks : [];
  const items = await Promise.all(
    webhooks.map(async ({ namespaceSelector, ...webhook }) => {
      const item = `${indent(await manifestYaml([[webhook]]), 2)}    {{- if $.Values.watchNamespaces }}\n${indent(
        ranges(await manifestYaml([{ namespaceSelector }])),
        4,
      )}    {{- end }}\n`;
      return when(has(ownerOf(String(webhook.name))), item);
    }),
  );
  const empty = { ...configuration, webhooks: [] };
  const annotated = (await template(empty))
    .replace(/^webhooks: \[\]\n/m, `webhooks:\n${items.join('')}`)
    .replace(
      /^( *labels:\n.*\n)/m,
      `$1  {{- if $.Values.certManager.enabled }}\n  annotations:\n    cert-manager.io/inject-ca-from: {{ $.Release.Namespace }}/vmwright-webhook\n  {{- end }}\n`,
    );
  return when(`or ${[...owners].map(has).join(' ')} false`, annotated);
}

/** Returns an object as a template, with the labels of the chart. */
async function template({ metadata, ...object }: KubeObject): Promise<string> {
  const { apiVersion, kind, ...content } = object;
  const { labels = {}, ...rest } = metadata;
  const text = await manifestYaml([
    { apiVersion, kind, metadata: { ...rest, labels: { [LABELS]: '', ...labels } }, ...content },
  ]);
  return ranges(text).replace(`    ${LABELS}: ""\n`, '    {{- include "vmwright.labels" $ | nindent 4 }}\n');
}

/** Repeats list items that stand for a watched namespace. */
function ranges(text: string): string {
  return text.replace(
    /^( *)- "\{\{ \. \}\}"\n/gm,
    '$1{{- range $.Values.watchNamespaces }}\n$1- {{ . | quote }}\n$1{{- end }}\n',
  );
}

function has(controller: string): string {
  return `(has "${controller}" $.Values.controllers)`;
}

function when(condition: string, text: string): string {
  return `{{- if ${condition} }}\n${text}{{- end }}\n`;
}

function documents(texts: readonly string[]): string {
  return texts.map((text) => (text.startsWith('{{- range') ? text : `---\n${text}`)).join('');
}
