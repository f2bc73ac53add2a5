import { CONTROLLERS, type Manifests } from '@vmwright/operator';
import { type KubeObject, manifestYaml, type WebhookConfiguration } from '@vmwright/runtime';
import { type GeneratedFiles, type ObjectsOf, partOf } from './parts.ts';

/** Example namespaces of the overlay `namespaces`, which users replace by their own. */
const EXAMPLE_NAMESPACES = ['team-a', 'team-b'];

/** Returns the generated files of `config/`. @param objectsOf the operator's manifests */
export async function kustomizeFiles(objectsOf: ObjectsOf): Promise<GeneratedFiles> {
  const all = objectsOf({ apiServers: [] });
  const limited = objectsOf({ namespaces: EXAMPLE_NAMESPACES });
  const files = new Map<string, string>();
  const write = async (path: string, objects: readonly KubeObject[]) =>
    void files.set(`config/${path}`, await manifestYaml(objects));
  for (const crd of all.crds) await write(`crd/${crd.metadata.name}.yaml`, [crd]);
  files.set(
    'config/crd/kustomization.yaml',
    kustomization(all.crds.map(({ metadata }) => `${metadata.name}.yaml`)),
  );

  for (const [part, objects] of Map.groupBy(all.rbac, partOf)) await write(`rbac/${part}.yaml`, objects);
  const users = Map.groupBy(all.userRoles, ({ metadata }) => metadata.name.split('-')[1] ?? '');
  for (const [kind, roles] of users) await write(`rbac/users/${kind}.yaml`, roles);
  const parts = ['operator', ...CONTROLLERS].map((part) => `${part}.yaml`);
  files.set('config/rbac/kustomization.yaml', kustomization([...parts, 'users']));
  files.set(
    'config/rbac/users/kustomization.yaml',
    kustomization([...users.keys()].map((kind) => `${kind}.yaml`)),
  );

  await write('webhook/webhooks.yaml', all.webhooks);
  files.set('config/webhook/kustomization.yaml', kustomization(['webhooks.yaml']));
  await write('network-policy/vmwright.yaml', all.networkPolicies);
  files.set('config/network-policy/kustomization.yaml', kustomization(['vmwright.yaml']));

  await write('overlays/namespaces/rbac.yaml', limited.rbac);
  await write('overlays/namespaces/webhooks.yaml', limited.webhooks);
  files.set('config/overlays/namespaces/kustomization.yaml', namespacesOverlay());
  for (const controller of CONTROLLERS) {
    const only = objectsOf({ controllers: new Set([controller]) });
    files.set(
      `config/overlays/${controller}/kustomization.yaml`,
      await controllerOverlay(controller, all, only),
    );
  }
  return files;
}

const HEAD = 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n';

function kustomization(resources: readonly string[]): string {
  return `${HEAD}resources:\n${resources.map((each) => `  - ${each}\n`).join('')}`;
}

const LABELS = 'labels:\n  - pairs:\n      app.kubernetes.io/name: vmwright\n';

function namespacesOverlay(): string {
  return `# The operator limited to named namespaces, which must exist. Copy this folder and replace ${EXAMPLE_NAMESPACES.join(' and ')} by yours.
${kustomization(['../../crd', '../../rbac/users', '../../manager', '../../network-policy', 'rbac.yaml', 'webhooks.yaml'])}${LABELS}${addArgument(`--namespaces=${EXAMPLE_NAMESPACES.join()}`)}`;
}

/**
 * Returns the overlay that removes the objects of all other controllers from `config/default`. The flag `--controllers`
 * excludes the other controllers instead of naming this one. The operator would exit if a named controller could not
 * run.
 */
async function controllerOverlay(controller: string, all: Manifests, only: Manifests): Promise<string> {
  const objects = ({ crds, rbac, userRoles, webhooks }: Manifests) => [
    ...crds,
    ...rbac,
    ...userRoles,
    ...webhooks,
  ];
  const kept = new Set(objects(only).map(identity));
  const deletions = objects(all)
    .filter((object) => !kept.has(identity(object)))
    .map((object) => ({ $patch: 'delete', ...reference(object) }));
  const partial = all.webhooks.flatMap((configuration) => {
    const same = only.webhooks.find((each) => identity(each) === identity(configuration));
    if (same === undefined) return [];
    const names = new Set(webhookNames(same));
    const webhooks = webhookNames(configuration)
      .filter((name) => !names.has(name))
      .map((name) => ({ $patch: 'delete', name }));
    return webhooks.length === 0 ? [] : [{ ...reference(configuration), webhooks }];
  });
  const patches = [...deletions, ...partial];
  const others = CONTROLLERS.filter((each) => each !== controller).map((each) => `-${each}`);
  const texts = await Promise.all(patches.map((patch) => manifestYaml([patch])));
  return `# The operator with the controller ${controller} only.
${kustomization(['../../default'])}${addArgument(`--controllers=${['*', ...others].join()}`)}${texts.map((text) => `  - patch: |\n${indent(text, 6)}`).join('')}`;
}

/** Returns the patch that adds an argument to the operator's container. */
function addArgument(argument: string): string {
  return `patches:
  - target:
      kind: Deployment
      name: vmwright
    patch: |
      - op: add
        path: /spec/template/spec/containers/0/args/-
        value: ${argument}
`;
}

function reference({ apiVersion, kind, metadata: { name, namespace } }: KubeObject): object {
  return { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } };
}

function identity(object: KubeObject): string {
  return JSON.stringify(reference(object));
}

/** Returns the names of the webhooks in a configuration. */
export function webhookNames({ webhooks = [] }: WebhookConfiguration): readonly string[] {
  return webhooks.map(({ name }) => name);
}

/** Indents each line that is not empty. */
export function indent(text: string, spaces: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(spaces));
}
