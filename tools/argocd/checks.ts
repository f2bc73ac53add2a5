import { readFileSync } from 'node:fs';
import { manifests } from '@vmwright/operator';
import { manifestYaml } from '@vmwright/runtime';
import { field } from '@vmwright/testbed';

/** The health check that all kinds share, because their conditions follow the same rules. */
const SCRIPT = readFileSync(new URL('health.lua', import.meta.url), 'utf8');

const NOTE = 'Written by `make generate` from tools/argocd. Do not edit.';

/** Group and kind of the objects that a health check assesses. */
export interface CheckedKind {
  readonly group: string;
  readonly kind: string;
}

/** Returns all kinds of the operator. */
export function checkedKinds(): readonly CheckedKind[] {
  return manifests({ namespace: 'unused' }).crds.map((crd) => ({
    group: String(field(crd, 'spec', 'group')),
    kind: String(field(crd, 'spec', 'names', 'kind')),
  }));
}

/**
 * Returns the path of a kind's health check in config/argocd. The layout is that of Argo CD's own
 * `resource_customizations`.
 */
export function checkPath({ group, kind }: CheckedKind): string {
  return `${group}/${kind}/health.lua`;
}

/**
 * Returns the files of config/argocd by path: a health check per kind, and a kustomize component that adds all of them
 * to Argo CD.
 */
export async function argocdFiles(): Promise<ReadonlyMap<string, string>> {
  const kinds = checkedKinds();
  const script = `-- ${NOTE}\n${SCRIPT}`;
  const settings = kinds.map(({ group, kind }) => [
    `resource.customizations.health.${group}_${kind}`,
    script,
  ]);
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'argocd-cm',
      namespace: 'argocd',
      labels: { 'app.kubernetes.io/name': 'argocd-cm', 'app.kubernetes.io/part-of': 'argocd' },
    },
    data: Object.fromEntries(settings),
  };
  const component = {
    apiVersion: 'kustomize.config.k8s.io/v1alpha1',
    kind: 'Component',
    patches: [{ path: 'argocd-cm.yaml' }],
  };
  return new Map([
    ...kinds.map((kind) => [checkPath(kind), script] as const),
    ['argocd-cm.yaml', `# ${NOTE}\n${await manifestYaml([configMap])}`],
    ['kustomization.yaml', `# ${NOTE}\n${await manifestYaml([component])}`],
  ]);
}
