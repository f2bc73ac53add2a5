import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { field, temporaryFolder } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { CONTROLLERS } from '../src/settings/controllers.ts';
import { page, ROOT, sectionOf } from './doc-commands.ts';
import {
  CHART,
  helm,
  helmTemplate,
  kustomized,
  type Manifest,
  nameOf,
  operatorContainer,
  operatorSettings,
} from './rendered.ts';

const HELM_LABELS = /^(helm\.sh\/chart|app\.kubernetes\.io\/(instance|version|managed-by))$/;
const HELM_ANNOTATIONS = /^(helm\.sh\/resource-policy|checksum\/config)$/;

/** Returns the objects by name. Removes the labels and annotations that only Helm sets, and parses the settings. */
function comparable(manifests: readonly Manifest[]): Readonly<Record<string, unknown>> {
  const entries = manifests
    .filter(({ kind }) => kind !== 'Namespace') // `helm install --create-namespace` creates the namespace
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
  test.each(cases)('config/%s is the same as the chart', async (folder, ...values) => {
    const [fromKustomize, fromHelm] = [await kustomized(folder), await helmTemplate(...values)];
    expect(fromHelm.length).toBeGreaterThan(15);
    expect(comparable(fromHelm)).toEqual(comparable(fromKustomize));
  });

  test.each([
    ['ssvirt', 'ssvirt.enabled=true'],
    ['ssvirt-sharding', 'ssvirt.enabled=true,ssvirt.sharding=true,ssvirt.replicas=3'],
  ])('the objects in config/%s are the same as in the chart with %s', async (folder, values) => {
    const mirror = await kustomized(folder);
    const names = new Set(mirror.map(nameOf));
    const fromHelm = await helmTemplate(`--set=${values}`);
    const rendered = comparable(fromHelm.filter((each) => names.has(nameOf(each))));
    expect(withoutEmptyMetadata(rendered)).toEqual(withoutEmptyMetadata(comparable(mirror)));
  });
});

/** Removes `labels: {}` and empty settings sections, which have no effect. */
function withoutEmptyMetadata(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each) =>
      /^(labels|controller)$/.test(key) && (each === null || isEmpty(each)) ? undefined : each,
    ),
  );
}

test.each(
  globSync('config/**/kustomization.yaml', { cwd: ROOT })
    // A component cannot be rendered on its own.
    .filter((file) => !readFileSync(`${ROOT}${file}`, 'utf8').includes('kind: Component'))
    .map((file) => dirname(file).slice('config/'.length)),
)('kubectl kustomize accepts config/%s', async (folder) => {
  expect(await kustomized(folder)).not.toEqual([]);
});

describe('controllers that the manifests select', () => {
  const offIn = (manifests: readonly Manifest[]) =>
    operatorSettings(manifests).disabled.map(({ name }) => name);

  test.each(CONTROLLERS)(
    'config/overlays/%s excludes all controllers except its own, and does not name its own',
    async (name) => {
      const rendered = await kustomized(`overlays/${name}`);
      expect(operatorSettings(rendered).named.size).toBe(0);
      const excluded = operatorSettings(rendered).disabled.filter(
        ({ why }) => why === '--controllers excludes it',
      );
      expect(excluded.map((each) => each.name)).toEqual(CONTROLLERS.filter((each) => each !== name));
    },
  );

  test('a controller that the chart selects is disabled, without an error, if its backend is not configured', async () => {
    const rendered = await helmTemplate('--set=controllers={vm,vmgroup,kubevirt}');
    expect(operatorSettings(rendered).named.size).toBe(0);
    expect(offIn(rendered)).toEqual(['vm', 'vmgroup', 'gpuinfo']);
  });
});

describe('credentials in extraEnv of the chart', () => {
  const withEnv = (variables: Readonly<Record<string, string>>, ...values: readonly string[]) => {
    const extraEnv = Object.entries(variables).map(([name, value]) => ({ name, value }));
    return helmTemplate(`--set-json=extraEnv=${JSON.stringify(extraEnv)}`, ...values);
  };

  test('a cloud API key in extraEnv replaces the Secret of the cloud, but not the one of vCenter', async () => {
    const backends = '--set=config.cloud-url=https://cloud.example,config.vc-host=vc.example';
    const { cloud, vsphere } = operatorSettings(await withEnv({ CLOUD_API_KEY: 'k-1' }, backends));
    expect(cloud?.apiKey).toBe('k-1');
    expect(vsphere?.vcenter?.credentials).toEqual({ folder: '/etc/vmwright/vcenter' });
    const file = operatorSettings(await withEnv({ CLOUD_API_KEY_FILE: '/key' }, backends));
    expect(file.cloud?.apiKey).toEqual({ file: '/key' });
  });

  test.each([
    { VC_HOST: 'vc.example', VC_USER: 'admin', VC_PASS: 's3cret' },
    { GOVMOMI_URL: 'vc.example', GOVMOMI_USERNAME: 'admin', GOVMOMI_PASSWORD: 's3cret' },
  ])('vCenter credentials in extraEnv replace the Secret of vCenter: %j', async (variables) => {
    const { vsphere } = operatorSettings(await withEnv(variables));
    expect(vsphere?.vcenter).toMatchObject({
      server: 'vc.example',
      credentials: { username: 'admin', password: 's3cret' },
    });
  });

  test.each([
    [{ VC_USER: 'admin' }, 'config.vc-host=vc.example'],
    [{ GOVMOMI_USERNAME: 'admin', GOVMOMI_PASSWORD: 's3cret' }, 'config.vc-host=vc.example'],
    [{ GOVMOMI_URL: 'vc.example', VC_PASS: 's3cret' }, 'replicas=2'],
  ])(
    'with extraEnv %j and --set=%s, the Secret of vCenter is used: vc-host needs VC_PASS, GOVMOMI_URL needs GOVMOMI_PASSWORD',
    async (variables, values) => {
      const { vsphere } = operatorSettings(await withEnv(variables, `--set=${values}`));
      expect(vsphere?.vcenter?.credentials).toEqual({ folder: '/etc/vmwright/vcenter' });
    },
  );

  test('the chart rejects POD_NAMESPACE in extraEnv', async () => {
    await expect(withEnv({ POD_NAMESPACE: 'other' })).rejects.toThrow(
      'extraEnv sets POD_NAMESPACE, which the chart sets to the namespace of the release; remove it from extraEnv',
    );
  });
});

test('a file from extraVolumes of the chart can be used in a setting', async () => {
  const rendered = await helmTemplate(
    '--set-json=extraVolumes=[{"name":"ca","configMap":{"name":"vcenter-ca"}}]',
    '--set-json=extraVolumeMounts=[{"name":"ca","mountPath":"/etc/vmwright/ca","readOnly":true}]',
    '--set=config.vc-host=vc.example,config.vc-ca=/etc/vmwright/ca/ca.crt',
  );
  const container = operatorContainer(rendered);
  expect(field(container, 'volumeMounts')).toContainEqual({
    name: 'ca',
    mountPath: '/etc/vmwright/ca',
    readOnly: true,
  });
  const deployment = rendered.find((each) => nameOf(each) === 'Deployment vmwright-system/vmwright');
  expect(field(deployment, 'spec', 'template', 'spec', 'volumes')).toContainEqual({
    name: 'ca',
    configMap: { name: 'vcenter-ca' },
  });
  expect(operatorSettings(rendered).vsphere?.vcenter?.ca).toBe('/etc/vmwright/ca/ca.crt');
});

describe('the image', () => {
  const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;
  let folder: string;

  beforeAll(async () => {
    folder = await temporaryFolder('chart');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('image.digest of the chart and a digest in kustomize give the same image, without a tag', async () => {
    const images = [{ name: 'vmwright', newName: 'registry.example/vmwright', digest: DIGEST }];
    writeFileSync(
      join(folder, 'kustomization.yaml'),
      stringify({ resources: [relative(folder, `${ROOT}config/default`)], images }),
    );
    const values = `--set=image.repository=registry.example/vmwright,image.tag=ignored,image.digest=${DIGEST}`;
    const fromHelm = await helmTemplate(values);
    expect(field(operatorContainer(fromHelm), 'image')).toBe(`registry.example/vmwright@${DIGEST}`);
    expect(comparable(fromHelm)).toEqual(comparable(await kustomized(relative(`${ROOT}config`, folder))));
  });
});

describe('roles', () => {
  test('the roles have no wildcards', async () => {
    const roles = (await kustomized('overlays/all')).filter(({ kind }) => kind.endsWith('Role'));
    expect(roles.length).toBeGreaterThan(20);
    for (const role of roles) expect(JSON.stringify(role), nameOf(role)).not.toContain('*');
  });

  test('the roles for users aggregate to admin, edit and view, except the viewer role of VirtualMachines', async () => {
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

describe('chart', () => {
  test('the chart passes helm lint', async () => {
    expect(await helm('lint', '--strict', CHART)).toContain('0 chart(s) failed');
  });

  test('the chart keeps its CRDs when it is uninstalled, unless crds.keep is false', async () => {
    const policies = async (...values: readonly string[]) =>
      (await helmTemplate(...values))
        .filter(({ kind }) => kind === 'CustomResourceDefinition')
        .map(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy']);
    expect(await policies()).toEqual(Array.from({ length: 5 }, () => 'keep'));
    expect(await policies('--set=crds.keep=false')).toEqual(Array.from({ length: 5 }, () => undefined));
    expect(await policies('--set=crds.enabled=false')).toEqual([]);
  });

  test('the chart has the version of the image that config/manager uses', async () => {
    const { appVersion } = parse(readFileSync(`${CHART}/Chart.yaml`, 'utf8'));
    expect(readFileSync(`${ROOT}config/manager/deployment.yaml`, 'utf8')).toContain(
      `image: vmwright:${appVersion}\n`,
    );
  });

  test('with ssvirt.config=null, the chart creates no ConfigMap for the mirror', async () => {
    const rendered = await helmTemplate('--set=ssvirt.enabled=true,ssvirt.config=null');
    expect(rendered.map(nameOf)).toContain('Deployment ssvirt-system/ssvirt-vm-controller');
    expect(rendered.map(nameOf)).not.toContain('ConfigMap ssvirt-system/ssvirt-config');
  });

  test('the chart has only values that docs/install.md describes', () => {
    const values = sectionOf(page('install.md'), 'Values');
    for (const name of Object.keys(parse(readFileSync(`${CHART}/values.yaml`, 'utf8'))))
      expect(values).toMatch(new RegExp(`\`${name}[.\`]`));
  });

  test('with networkPolicy.apiServers, the chart permits access to the webhooks only from these addresses', async () => {
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
    ['image.digest=sha256:1', 'digest'],
    ['config.cloud-api-key-file=/key', 'cloud-api-key-file'],
    ['config.vc-credentials=/vcenter', 'vc-credentials'],
    ['resources.limits.memory=lots', 'memory'],
    ['networkPolicy.apiServers={10.0.0.4}', 'apiServers'],
    ['replica=3', 'replica'],
    ['crds.enabled=yes', 'enabled'],
  ])('the chart rejects --set %s', async (value, name) => {
    await expect(helmTemplate(`--set=${value}`)).rejects.toThrow(name);
  });
});

test('the chart and the Deployment have the version of the packages', () => {
  const read = (path: string) => readFileSync(`${ROOT}${path}`, 'utf8');
  const { version } = JSON.parse(read('packages/operator/package.json'));
  expect(parse(read('charts/vmwright/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  expect(read('config/manager/deployment.yaml')).toContain(`image: vmwright:${version}\n`);
});
