import { CONTROLLERS, type Manifests } from '@vmwright/operator';
import { type KubeObject, manifestYaml, type WebhookConfiguration } from '@vmwright/runtime';
import { indent, webhookNames } from './kustomize.ts';
import { type GeneratedFiles, type ObjectsOf, partOf } from './parts.ts';

/** Template action for the current namespace inside a `range` over the watched namespaces. */
const EACH = '{{ . }}';

/**
 * Placeholder key in labels and annotations. Its line is replaced by the Helm action that includes the labels or
 * annotations of the chart. The key needs no quotes in YAML, so that the line can be found.
 */
const INCLUDED = 'INCLUDED';

/**
 * Returns the generated templates of the chart: CRDs, RBAC and webhooks, each inside the conditions under which it is
 * installed.
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

/**
 * Returns the template of the roles. If the values list namespaces to watch, the template installs the roles for these
 * namespaces. Otherwise, it installs them for all namespaces. Objects that are the same in both cases are written once.
 */
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

/**
 * Returns the template of a role or binding. A RoleBinding in a watched namespace is repeated for each watched
 * namespace.
 */
async function boundTemplate(object: KubeObject): Promise<string> {
  const text = await template(object);
  return object.metadata.namespace === EACH
    ? `{{- range $.Values.watchNamespaces }}\n---\n${text}{{- end }}\n`
    : text;
}

/** Returns the template of a CRD, with the annotation that keeps it when the release is uninstalled. */
async function crdTemplate(crd: KubeObject): Promise<string> {
  const isConverted = JSON.stringify(crd).includes('"strategy":"Webhook"');
  const { annotations = {}, ...metadata } = crd.metadata;
  const text = await template({
    ...crd,
    metadata: { ...metadata, annotations: { ...annotations, [INCLUDED]: '' } },
  });
  const keep = '    {{- include "vmwright.crdAnnotations" $ | nindent 4 }}\n';
  return text.replace(INCLUDED_LINE, isConverted ? keep + injection(4) : keep);
}

/** Returns the annotation that makes cert-manager inject its CA. */
function injection(spaces: number, before = ''): string {
  return indent(
    when(
      '$.Values.certManager.enabled',
      `${before}cert-manager.io/inject-ca-from: {{ $.Release.Namespace }}/vmwright-webhook\n`,
    ),
    spaces,
  );
}

/** Returns the template of a webhook configuration. Each webhook is inside the condition of its controller. */
async function webhookTemplate(
  configuration: WebhookConfiguration,
  each: readonly (readonly [string, Manifests])[],
): Promise<string> {
  const ownerOf = (webhook: string) =>
    each.find(([, { webhooks }]) => webhooks.flatMap(webhookNames).includes(webhook))?.[0] ?? '';
  const owners = new Set(webhookNames(configuration).map(ownerOf));
  const items = await Promise.all(
    (configuration.webhooks ?? []).map(async ({ namespaceSelector, ...webhook }) => {
      const selector = ranges(await manifestYaml([{ namespaceSelector }]));
      const item = indent(await manifestYaml([[webhook]]), 2);
      const condition = '$.Values.watchNamespaces';
      return when(has(ownerOf(webhook.name)), item + indent(when(condition, selector), 4));
    }),
  );
  const empty: WebhookConfiguration = { ...configuration, webhooks: [] };
  const text = (await template(empty))
    .replace(/^webhooks: \[\]\n/m, () => `webhooks:\n${items.join('')}`)
    .replace(/^ *labels:\n.*\n/m, (labels) => labels + injection(2, 'annotations:\n  '));
  return when(`or ${[...owners].map(has).join(' ')} false`, text);
}

/** Returns an object as a template, with the labels of the chart. */
async function template({ apiVersion, kind, metadata, ...content }: KubeObject): Promise<string> {
  const { labels = {}, ...rest } = metadata;
  const text = await manifestYaml([
    { apiVersion, kind, metadata: { ...rest, labels: { [INCLUDED]: '', ...labels } }, ...content },
  ]);
  // The labels come after the annotations, so the last placeholder line is that of the labels.
  const at = text.lastIndexOf(INCLUDED_LINE);
  const included = '    {{- include "vmwright.labels" $ | nindent 4 }}\n';
  return ranges(text.slice(0, at) + included + text.slice(at + INCLUDED_LINE.length));
}

const INCLUDED_LINE = `    ${INCLUDED}: ""\n`;

/** Replaces each list item that is the Helm action `{{ . }}` by a loop that writes one item per watched namespace. */
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
