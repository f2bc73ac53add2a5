/**
 * Generates the manifests of KubeVirt, CDI, VolumeSnapshot, Multus, JobSet, cert-manager and the Prometheus operator
 * from their Go modules. The versions of the modules are pinned in `tools/` or in this file. The manifests are
 * committed, because the testbed needs them on machines without Go.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { toolsFolder } from '../assets/cache.ts';
import { run } from '../process/run.ts';

const CDI = 'kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1';
const SNAPSHOTTER = 'github.com/kubernetes-csi/external-snapshotter/client/v8';
const MULTUS = 'github.com/k8snetworkplumbingwg/network-attachment-definition-client';
/**
 * Modules with CRDs. They are pinned here and not in go.mod, where they would change the versions of controller-gen's
 * dependencies.
 */
const JOBSET = 'sigs.k8s.io/jobset@v0.10.1';
const CERT_MANAGER = 'github.com/cert-manager/cert-manager@v1.21.2';
const PROMETHEUS_OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0';

/** Writes all manifests into `folder`. */
export async function generateManifests(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const write = (name: string, objects: readonly unknown[]) =>
    writeFile(join(folder, `${name}.yaml`), header + objects.map(document).join('---\n'));

  const kubevirt = JSON.parse(
    await go('kubevirt', 'run', ...BUILD_FLAGS, 'vmwright.dev/tools/kubevirt/kubevirt-manifests'),
  );
  await write('kubevirt-crds', kubevirt.crds);
  await write('kubevirt-rbac', kubevirt.rbac);
  await write('virt-api', kubevirt.virtApi);

  const controllerGen = ['run', ...BUILD_FLAGS, 'sigs.k8s.io/controller-tools/cmd/controller-gen'];
  await write(
    'cdi-crds',
    documents(await go('manifests', ...controllerGen, 'crd:maxDescLen=0', `paths=${CDI}`, 'output:stdout')),
  );

  const snapshots = ['volumesnapshotclasses', 'volumesnapshotcontents', 'volumesnapshots'];
  const files = snapshots.map((name) => `config/crd/snapshot.storage.k8s.io_${name}.yaml`);
  await write('volumesnapshot-crds', await published(SNAPSHOTTER, files));
  await write(
    'jobset-crds',
    await published(JOBSET, ['config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml']),
  );
  await write('multus-crds', await published(MULTUS, ['artifacts/networks-crd.yaml']));
  // Writes only the CRDs of kinds that config/ and the chart contain.
  const certificates = ['certificates', 'issuers'].map((name) => `deploy/crds/cert-manager.io_${name}.yaml`);
  await write('cert-manager-crds', await published(CERT_MANAGER, certificates));
  const monitoring = ['servicemonitors', 'prometheusrules'].map(
    (name) => `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`,
  );
  await write('prometheus-operator-crds', await published(PROMETHEUS_OPERATOR, monitoring));
}

/**
 * Build flags of the Go programs that print manifests. The testbed's own programs are built with the same flags, so
 * that both builds share the compiler's cache.
 */
const BUILD_FLAGS = ['-trimpath', '-buildvcs=false', '-mod=readonly'];

const header = '# Written by `make generate` from the modules pinned in tools/. Do not edit.\n';

/** Reads YAML files that a module ships. */
async function published(module: string, files: readonly string[]): Promise<unknown[]> {
  const dir = (await go('manifests', 'mod', 'download', '-json', module)).match(/"Dir": "(.*)"/)?.[1];
  if (dir === undefined) throw new Error(`go mod download returned no folder for ${module}`);
  const texts = await Promise.all(files.map((file) => readFile(join(dir, file), 'utf8')));
  return texts.flatMap(documents);
}

async function go(module: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
  return (await run('go', ['-C', join(toolsFolder, module), ...args], { env })).stdout;
}

function documents(text: string): unknown[] {
  return parseAllDocuments(text)
    .map((each) => each.toJS())
    .filter((each) => each !== null);
}

/**
 * Formats an object as YAML. Omits the status, an empty creationTimestamp and all descriptions. The descriptions make
 * up two thirds of a CRD.
 */
function document(object: unknown): string {
  const plain = JSON.stringify({ ...toObject(object), status: undefined }, (key, value) =>
    (key === 'description' && typeof value === 'string') || (key === 'creationTimestamp' && value === null)
      ? undefined
      : value,
  );
  return stringify(JSON.parse(plain), { lineWidth: 0, aliasDuplicateObjects: false });
}

function toObject(value: unknown): object {
  if (typeof value === 'object' && value !== null) return value;
  throw new Error(`not an object: ${String(value)}`);
}
