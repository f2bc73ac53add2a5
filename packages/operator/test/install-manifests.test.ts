import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CONTROLLERS } from '../src/settings/controllers.ts';
import { page, ROOT, sectionOf } from './doc-commands.ts';
import { CHART, helm, helmTemplate, kustomized, type Manifest, nameOf } from './rendered.ts';

const HELM_LABELS = /^(helm\.sh\/chart|app\.kubernetes\.io\/(instance|version|managed-by))$/;
const HELM_ANNOTATIONS = /^(helm\.sh\/resource-policy|checksum\/config)$/;

/** Returns the objects by name, without the labels and annotations that only Helm has, and with parsed settings. */
function comparable(manifests: readonly Manifest[]): Readonly<Record<string, unknown>> {
  const entries = manifests
    .filter(({ kind }) => kind !== 'Namespace') // `helm install --create-namespace` creates it
    .map((manifest) => [nameOf(manifest), normalized(manifest)] as const);
  expect(new Set(entries.map(([name]) => name)).size).toBe(entries.length);
  return Object.fromEntries(entries);
}

/** Removes Helm's labels and annotations from the object and from the template of its pods, and parses settings. */
function normalized(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => normalized(each));
  if (key === 'config.yaml' && typeof value === 'string') return parse(value) ?? {};
  if (typeof value !== 'object' || value === null) return value;
  const ignored = { labels: HELM_LABELS, annotations: HELM_ANNOTATIONS }[key];
  const entries = Object.entries(value)
    .filter(
      ([name, content]) =>
        !ignored?.test(name) && !(name === 'annotations' && isEmpty(normalized(content, name))),
    )
    .map(([name, content]) => [name, normalized(content, name)]);
  return Object.fromEntries(entries);
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

describe('kustomize and Helm render the same objects', () => {
  const MONITORING = ['serviceMonitor', 'prometheusRule', 'dashboards', 'certManager'];
  const cases: readonly (readonly [folder: string, ...values: string[]])[] = [
    ['default'],
    ['overlays/all', ...MONITORING.map((name) => `--set=${name}.enabled=true`)],
    ['overlays/namespaces', '--set=watchNamespaces={team-a,team-b}'],
    ...CONTROLLERS.map((name) => [`overlays/${name}`, `--set=controllers={${name}}`] as const),
    [
      'overlays/development',
      ...['--set=replicas=1,podDisruptionBudget.enabled=false,image.tag=dev,image.pullPolicy=IfNotPresent'],
      '--set=extraArgs={--leader-elect=false,--log-level=debug,--log-format=text}',
    ],
  ];
  test.each(cases)('config/%s', async (folder, ...values) => {
    const [fromKustomize, fromHelm] = [await kustomized(folder), await helmTemplate(...values)];
    expect(fromHelm.length).toBeGreaterThan(15);
    expect(comparable(fromHelm)).toEqual(comparable(fromKustomize));
  });

  test('config/ssvirt', async () => {
    const mirror = await kustomized('ssvirt');
    const names = new Set(mirror.map(nameOf));
    const fromHelm = await helmTemplate('--set=ssvirt.enabled=true');
    const rendered = comparable(fromHelm.filter((each) => names.has(nameOf(each))));
    expect(withoutEmptyMetadata(rendered)).toEqual(withoutEmptyMetadata(comparable(mirror)));
  });
});

/** Removes `labels: {}` and an empty section of settings, which have no effect. */
function withoutEmptyMetadata(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each) =>
      /^(labels|controller)$/.test(key) && (each === null || isEmpty(each)) ? undefined : each,
    ),
  );
}

test.each(
  globSync('config/**/kustomization.yaml', { cwd: ROOT })
    // A component can be rendered only as a part of something else.
    .filter((file) => !readFileSync(`${ROOT}${file}`, 'utf8').includes('kind: Component'))
    .map((file) => dirname(file).slice('config/'.length)),
)('kubectl kustomize accepts config/%s', async (folder) => {
  expect(await kustomized(folder)).not.toEqual([]);
});

describe('the roles', () => {
  test('have no wildcards', async () => {
    const roles = (await kustomized('overlays/all')).filter(({ kind }) => kind.endsWith('Role'));
    expect(roles.length).toBeGreaterThan(20);
    for (const role of roles) expect(JSON.stringify(role), nameOf(role)).not.toContain('*');
  });

  test('of users exist for each kind and are part of the built-in roles, except what shows passwords to viewers', async () => {
    const all = await kustomized('default');
    const crds = all.filter(({ kind }) => kind === 'CustomResourceDefinition');
    const aggregated = all.flatMap(({ metadata: { name, labels = {} } }) =>
      Object.keys(labels).flatMap((label) => {
        const target = /aggregate-to-(\w+)$/.exec(label)?.[1];
        return target === undefined ? [] : [`${name} in ${target}`];
      }),
    );
    expect(aggregated).toHaveLength(3 * crds.length - 1);
    expect(aggregated).not.toContain('vmwright-virtualmachine-viewer in view');
    expect(aggregated).toEqual(
      expect.arrayContaining([
        'vmwright-vm-admin in admin',
        'vmwright-vm-editor in edit',
        'vmwright-vm-viewer in view',
      ]),
    );
  });
});

describe('the chart', () => {
  test('passes helm lint', async () => {
    expect(await helm('lint', '--strict', CHART)).toContain('0 chart(s) failed');
  });

  test('keeps its CRDs by default, and deletes them with crds.keep=false', async () => {
    const policies = async (...values: readonly string[]) =>
      (await helmTemplate(...values))
        .filter(({ kind }) => kind === 'CustomResourceDefinition')
        .map(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy']);
    expect(await policies()).toEqual(Array.from({ length: 5 }, () => 'keep'));
    expect(await policies('--set=crds.keep=false')).toEqual(Array.from({ length: 5 }, () => undefined));
    expect(await policies('--set=crds.enabled=false')).toEqual([]);
  });

  test('has the version of the image that config/manager uses', async () => {
    const { appVersion } = parse(readFileSync(`${CHART}/Chart.yaml`, 'utf8'));
    expect(readFileSync(`${ROOT}config/manager/deployment.yaml`, 'utf8')).toContain(
      `image: vmwright:${appVersion}\n`,
    );
  });

  test('uses the ConfigMap of the SSVirt API server with ssvirt.config=null', async () => {
    const rendered = await helmTemplate('--set=ssvirt.enabled=true,ssvirt.config=null');
    expect(rendered.map(nameOf)).toContain('Deployment ssvirt-system/ssvirt-vm-controller');
    expect(rendered.map(nameOf)).not.toContain('ConfigMap ssvirt-system/ssvirt-config');
  });

  test('has only values that docs/install.md describes', () => {
    const values = sectionOf(page('install.md'), 'Values');
    for (const name of Object.keys(parse(readFileSync(`${CHART}/values.yaml`, 'utf8'))))
      expect(values).toMatch(new RegExp(`\`${name}[.\`]`));
  });

  test('limits the webhooks to the addresses of the API servers', async () => {
    const rendered = await helmTemplate('--set=networkPolicy.apiServers={10.0.0.4/32}');
    const policy = rendered.find(({ kind }) => kind === 'NetworkPolicy');
    expect(policy).toMatchObject({
      spec: { ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.4/32' } }], ports: [{ port: 9443 }] }, {}] },
    });
  });

  test.each([
    ['replicas=two', 'replicas'],
    ['replicas=-1', 'replicas'],
    ['controllers={vms}', 'controllers'],
    ['controllers=null', 'controllers'],
    ['watchNamespaces={Team_A}', 'watchNamespaces'],
    ['config.cloud-ulr=https://cloud.example', 'cloud-ulr'],
    ['config.controllers=vm', 'controllers'],
    ['image.pullPolicy=Sometimes', 'pullPolicy'],
    ['resources.limits.memory=lots', 'memory'],
    ['networkPolicy.apiServers={10.0.0.4}', 'apiServers'],
    ['replica=3', 'replica'],
    ['crds.enabled=yes', 'enabled'],
  ])('rejects --set %s', async (value, name) => {
    await expect(helmTemplate(`--set=${value}`)).rejects.toThrow(name);
  });
});

test('the chart and the Deployment have the version of the packages', () => {
  const read = (path: string) => readFileSync(`${ROOT}${path}`, 'utf8');
  const { version } = JSON.parse(read('packages/operator/package.json'));
  expect(parse(read('charts/vmwright/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  expect(read('config/manager/deployment.yaml')).toContain(`image: vmwright:${version}\n`);
});
