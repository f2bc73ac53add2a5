import { readFile } from 'node:fs/promises';
import { canary, condition, field, type KubeObject, manifestPath } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VirtualMachine } from '../src/virtualmachine/resource.ts';
import { SYSTEM } from './installed.ts';
import { auditLines } from './log-lines.ts';
import { expectExactPermissions, permissionsFor } from './permissions.ts';
import { createImageSecret, createProposed } from './virtualmachine-proposal.ts';
import {
  conditionIn,
  FARM,
  install,
  noteOf,
  PATHS,
  reasonOf,
  type WithKubevirt,
  WORK,
} from './with-kubevirt.ts';

/** Multus' CRD. */
const MULTUS = manifestPath('multus-crds');

let env: WithKubevirt;
beforeAll(async () => {
  // Leader election is off: tests count the writes of an idle operator, and Lease renewals would add to them.
  env = await install([
    '--leader-elect=false',
    '--image-namespaces=vmdi-farm,absent,readable',
    '--image-creation-namespaces=vmdi-farm,absent',
  ]);
  await createImageSecret(env.controlPlane.cluster);
  await env.image('base');
  await cluster().waitFor(`${PATHS.images}/base`, (image) => status(image, 'phase') === 'Ready');
}, 180_000);
afterAll(() => env?.[Symbol.asyncDispose]());

const status = (vm: KubeObject, name: string) => field(vm, 'status', name);
const isReady = (vm: KubeObject) =>
  status(vm, 'phase') === 'Ready' && status(vm, 'observedGeneration') === field(vm, 'metadata', 'generation');
/**
 * Whether an instance runs. After a restart, the VirtualMachine may still be Ready while the previous instance stops.
 */
const isUp = (instance: KubeObject) => status(instance, 'phase') === 'Running';
const clonesOf = (image: KubeObject) =>
  [status(image, 'snapshots') ?? []].flat().map((snapshot) => field(snapshot, 'clones'));
const isReason = (reason: string) => (vm: KubeObject) => reasonOf(vm) === reason;
const message = (vm: KubeObject) => String(status(vm, 'message'));
const cluster = () => env.controlPlane.cluster;
const get = (path: string) => cluster().api.get(path);
const uidOf = async (path: string) => (await get(path)).metadata.uid;

/** Returns the manifest of an empty image. */
function imageIn(namespace: string, name: string): string {
  return JSON.stringify({
    apiVersion: 'crd.pelotech.ot/v1alpha1',
    kind: 'VMDiskImage',
    metadata: { namespace, name },
    spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi' },
  });
}

/** Deletes an object and waits until a new object of the same name satisfies the predicate. */
async function replaced(path: string, is: (object: KubeObject) => boolean = () => true): Promise<KubeObject> {
  const uid = await uidOf(path);
  await cluster().api.delete(path);
  return cluster().waitFor(path, (object) => object.metadata.uid !== uid && is(object));
}

/** Waits for an event about a VirtualMachine. @param text part of the event's note @returns the note */
const eventOf = (name: string, reason: string, type?: 'Warning', text?: string) =>
  noteOf(cluster(), name, reason, type, text);

describe('manifest of the design proposal', () => {
  test('the VirtualMachine of the design proposal waits for its missing networks, creates its image, and becomes Ready', async () => {
    await createProposed(cluster());
  });

  test('the VirtualMachine of the design proposal keeps its password out of every other object, event and log', async () => {
    const secret = await get(`${PATHS.secrets}/demo-workspace-1-cloudinit`);
    const userdata = Buffer.from(String(field(secret, 'data', 'userdata')), 'base64').toString();
    expect(userdata).toContain('name: "demo-user"');
    expect(userdata).toMatch(/passwd: "\$6\$[./0-9A-Za-z]{16}\$[./0-9A-Za-z]{86}"/);
    const kinds =
      'secrets,configmaps,pvc,dv,vmdi,virtualmachines.kubevirt.io,vmi,events,events.events.k8s.io,pods';
    const dump = await env.kubectl('get', '-A', '-o', 'json', kinds);
    const encoded = Buffer.from('demo-pwd').toString('base64').replace(/=+$/, '');
    for (const text of [dump, userdata, await readFile(env.operator.log, 'utf8')]) {
      expect(text).not.toContain('demo-pwd');
      expect(text).not.toContain(encoded);
    }
    const vm = await get(`${PATHS.machines}/demo-workspace-1`);
    expect(JSON.stringify(vm.status)).not.toContain('demo-pwd');
  });
});

describe('running machines', () => {
  test('a new machine becomes Ready and reports its address, with at most 13 writes of the operator', async () => {
    await env.network('net-a');
    const before = await env.writes();
    await env.machine('runner', { interfaces: [{ network: 'net-a', ipAddress: '10.1.0.5/24' }] });
    const ready = await env.until('runner', isReady);
    expect(ready.status).toMatchObject({ ip: '10.1.0.5', printableStatus: 'Running' });
    expect(status(ready, 'node')).toMatch(/^kubevirt-\d$/);
    // The operator also writes the new reference and the clone to the status of the image. These writes are counted.
    await cluster().waitFor(
      `${PATHS.images}/base`,
      (image) => status(image, 'references') === 1 && clonesOf(image).includes(1),
    );
    expect((await env.writes()) - before).toBeLessThanOrEqual(13);
  });

  test('a running machine causes no write when it is reconciled without a change', async () => {
    const settled = await env.until('runner', isReady);
    const before = await env.writes();
    await env.touch('runner');
    const marker = await env.machine('marker', { vmDiskImageRef: { name: 'none' } });
    await env.until('marker', isReason('ImageNotFound'));
    const after = await env.until('runner', isReady);
    expect(after.status).toEqual(settled.status);
    expect((await env.writes()) - before).toBe(2); // the finalizer and the status of the VirtualMachine `marker`
    await cluster().api.delete(`${PATHS.machines}/${marker.metadata.name}`);
  });

  test('a running machine is repaired when its Secret, its KubeVirt VirtualMachine or its instance is deleted', async () => {
    const isLabelled = ({ metadata }: KubeObject) => metadata.labels?.['vmwright.dev/uid'] !== undefined;
    await replaced(`${PATHS.secrets}/runner-cloudinit`, isLabelled);
    const instance = await uidOf(`${PATHS.instances}/runner`);
    await replaced(`${PATHS.kubevirt}/runner`, isLabelled);
    await cluster().waitFor(
      `${PATHS.instances}/runner`,
      (each) => each.metadata.uid !== instance && isUp(each),
    );
    await env.until('runner', isReady);
    await replaced(`${PATHS.instances}/runner`, isUp);
    await env.until('runner', isReady);
  });

  test('a running machine is repaired when a user changes its children', async () => {
    const { api } = cluster();
    await api.merge(`${PATHS.kubevirt}/runner`, {
      metadata: { labels: { team: 'a', 'app.kubernetes.io/managed-by': null } },
      spec: { runStrategy: 'RerunOnFailure' },
    });
    const repaired = await cluster().waitFor(
      `${PATHS.kubevirt}/runner`,
      (machine) =>
        field(machine, 'spec', 'runStrategy') === 'Always' &&
        machine.metadata.labels?.['app.kubernetes.io/managed-by'] === 'vmwright',
    );
    expect(repaired.metadata.labels).toMatchObject({ team: 'a' });
    const secret = `${PATHS.secrets}/runner-cloudinit`;
    const userdata = field(await get(secret), 'data', 'userdata');
    await api.merge(secret, { data: { userdata: 'Zm9v' } });
    await cluster().waitFor(secret, (object) => field(object, 'data', 'userdata') === userdata);
    await env.until('runner', isReady);
  });

  test('a change that needs a restart is reported for a running machine; with updatePolicy Restart, the machine restarts once', async () => {
    const resources = { cpu: 2, memory: '1Gi', diskSize: '2Gi' };
    await env.patch('runner', { spec: { resources } });
    await env.until('runner', (vm) => condition(vm, 'RestartRequired') === 'True' && isReady(vm));
    const instance = await uidOf(`${PATHS.instances}/runner`);
    await env.patch('runner', { spec: { updatePolicy: 'Restart' } });
    await cluster().waitFor(`${PATHS.instances}/runner`, ({ metadata }) => metadata.uid !== instance);
    const restarted = await uidOf(`${PATHS.instances}/runner`);
    await env.until('runner', (vm) => condition(vm, 'RestartRequired') === undefined && isReady(vm));
    expect(field(await get(`${PATHS.instances}/runner`), 'spec', 'domain', 'cpu', 'cores')).toBe(2);
    expect(await uidOf(`${PATHS.instances}/runner`)).toBe(restarted);
    await env.patch('runner', { spec: { updatePolicy: 'Report' } });
  });

  test('a running machine gets a new disk when its DataVolume is deleted, and uses it after a restart', async () => {
    const old = String(status(await env.until('runner', isReady), 'dataVolume'));
    await cluster().api.delete(`${PATHS.volumes}/${old}`);
    const isCloned = (vm: KubeObject) =>
      status(vm, 'dataVolume') === `${old}-2` && condition(vm, 'VolumeReady') === 'True';
    await env.until('runner', (vm) => isCloned(vm) && condition(vm, 'RestartRequired') === 'True');
    expect(await eventOf('runner', 'VolumeLost')).toContain(old);
    await replaced(`${PATHS.instances}/runner`, isUp);
    await env.until('runner', (vm) => isReady(vm) && condition(vm, 'RestartRequired') === undefined);
    await cluster().waitForGone(`${PATHS.claims}/${old}`);
  });

  const boot = (value: string | null) =>
    cluster().api.merge(`${PATHS.kubevirt}/runner`, {
      spec: { template: { metadata: { annotations: { 'testbed.vmwright.dev/boot': value } } } },
    });

  test('the operator restarts a machine that is stuck although its disk is ready', async () => {
    await boot('hang');
    const stuck = await replaced(
      `${PATHS.instances}/runner`,
      (instance) => field(instance, 'status', 'phase') === 'Scheduled',
    );
    await boot(null);
    // kubectl reads an object before it patches it. virt-handler's role does not permit reads, so the test adds a role.
    await env.kubectl('create', 'clusterrole', 'read-instances', '--verb=get', '--resource=vmi');
    const account = '--serviceaccount=kubevirt:kubevirt-handler';
    await env.kubectl(
      'create',
      'clusterrolebinding',
      'read-instances',
      '--clusterrole=read-instances',
      account,
    );
    const conditions = field(stuck, 'status', 'conditions');
    const lost = { type: 'Synchronized', status: 'False', reason: 'FailedPvcNotFound', message: 'no claim' };
    const vm = await get(`${PATHS.machines}/runner`);
    const patch = { status: { conditions: [...(Array.isArray(conditions) ? conditions : []), lost] } };
    await cluster().kubectl([
      ...['patch', '-n', WORK, 'vmi', 'runner', '--type=merge', `--patch=${JSON.stringify(patch)}`],
      '--as=system:serviceaccount:kubevirt:kubevirt-handler',
    ]);
    const reported = await env.untilAfter(vm, isReason('ErrorPvcNotFound'));
    expect(message(reported)).toContain('the operator restarts it');
    await cluster().waitFor(
      `${PATHS.instances}/runner`,
      ({ metadata }) => metadata.uid !== stuck.metadata.uid,
    );
    expect(await eventOf('runner', 'Restarted', 'Warning')).toContain('KubeVirt reports ErrorPvcNotFound');
    const ready = await env.until('runner', isReady);
    expect(status(ready, 'restartedAt')).toBeDefined();
    expect(status(ready, 'restarts')).toBeUndefined();
  });

  test("when its root disk becomes ready, a machine that crashed earlier is restarted without waiting for KubeVirt's back-off", async () => {
    const { api } = cluster();
    const vm = await env.until('runner', isReady);
    const snapshots = `/apis/snapshot.storage.k8s.io/v1/namespaces/${FARM}/volumesnapshots`;
    const hang = (value: string | null) =>
      api.merge(`${snapshots}/${String(status(vm, 'snapshot'))}`, {
        metadata: { annotations: { 'testbed.vmwright.dev/clone': value } },
      });
    await hang('hang');
    await boot('crash');
    await api.delete(`${PATHS.instances}/runner`);
    await env.until('runner', isReason('CrashLoopBackOff'));
    await api.delete(`${PATHS.volumes}/${String(status(vm, 'dataVolume'))}`);
    await env.until('runner', (each) => field(conditionIn(each, 'VolumeReady'), 'reason') === 'Cloning');
    await boot(null);
    await hang(null);
    await eventOf('runner', 'Restarted', 'Warning', 'before its root disk was ready');
    const ready = await env.until('runner', isReady);
    expect(status(ready, 'restarts')).toBeUndefined();
    expect(field(await get(`${PATHS.kubevirt}/runner`), 'status', 'startFailure')).toBeUndefined();
  });

  test('a running machine is deleted in order: first in KubeVirt, then its disk and its Secret, then our VirtualMachine', async () => {
    const vm = await env.until('runner', isReady);
    const stop = new AbortController();
    const deleted = new Map<string, number>();
    const { api } = cluster();
    const from = field(JSON.parse(await api.text(PATHS.machines)), 'metadata', 'resourceVersion');
    const watches = [PATHS.kubevirt, PATHS.instances, PATHS.volumes, PATHS.secrets, PATHS.machines].map(
      async (path) => {
        const changes = `${path}?resourceVersion=${from}`; // includes the changes before the watch begins
        for await (const { type, object } of api.watch(changes, stop.signal)) {
          const isOurs = object.metadata.name === 'runner' || object.metadata.name.startsWith('runner-');
          if (type === 'DELETED' && isOurs) deleted.set(path, Number(object.metadata.resourceVersion));
        }
      },
    );
    await env.kubectl('delete', '-n', WORK, 'otvm', 'runner');
    await expect.poll(() => deleted.size).toBe(5);
    stop.abort();
    await Promise.allSettled(watches);
    const at = (path: string) => deleted.get(path) ?? 0;
    expect(at(PATHS.instances)).toBeLessThan(at(PATHS.volumes));
    expect(at(PATHS.kubevirt)).toBeLessThan(at(PATHS.volumes));
    expect(at(PATHS.kubevirt)).toBeLessThan(at(PATHS.secrets));
    expect(Math.max(at(PATHS.volumes), at(PATHS.secrets))).toBeLessThan(at(PATHS.machines));
    await cluster().waitForGone(`${PATHS.claims}/${status(vm, 'dataVolume')}`);
    const acts = (await auditLines(env.operator, `${WORK}/runner`)).filter(
      (line) => field(line, 'reason') === 'the VirtualMachine is being deleted',
    );
    expect(acts.map((line) => `${field(line, 'audit')} ${field(line, 'resource')}`)).toEqual([
      'delete VirtualMachine',
      'delete DataVolume',
    ]);
  });
});

describe('the status names the object and the remedy', () => {
  test('a missing image and a missing image namespace are reported', async () => {
    const vmDiskImageTemplate = { secretRef: '', sourceType: 'blank', diskSize: '1Gi' };
    await env.machine('no-image', { vmDiskImageRef: { name: 'none' } });
    expect(message(await env.until('no-image', isReason('ImageNotFound')))).toContain(
      'VMDiskImage work/none',
    );
    await env.machine('nowhere', { vmDiskImageRef: { name: 'x', namespace: 'absent' }, vmDiskImageTemplate });
    expect(message(await env.until('nowhere', isReason('ImageNamespaceNotFound')))).toContain(
      'The namespace absent of the VMDiskImage absent/x does not exist. Create it',
    );
    const elsewhere = { vmDiskImageRef: { name: 'x', namespace: 'kube-public' }, vmDiskImageTemplate };
    await env.machine('not-allowed', elsewhere);
    const rejected = await env.until('not-allowed', isReason('ImageNamespaceNotAllowed'));
    expect([status(rejected, 'phase'), condition(rejected, 'Stalled')]).toEqual(['Failed', 'True']);
    expect(message(rejected)).toContain('(--image-namespaces)');
  });

  test('a missing image is reported if machines may use images in its namespace, but may not create images there', async () => {
    await env.kubectl('create', 'namespace', 'readable');
    const vmDiskImageTemplate = { secretRef: '', sourceType: 'blank', diskSize: '1Gi' };
    await env.machine('use-only', {
      ignoreOnDeploy: true,
      vmDiskImageRef: { name: 'x', namespace: 'readable' },
      vmDiskImageTemplate,
    });
    expect(message(await env.until('use-only', isReason('ImageCreationNotAllowed')))).toContain(
      '(--image-creation-namespaces)',
    );
    await cluster().apply(imageIn('readable', 'x'));
    await env.until('use-only', isReady);
  });

  test('a machine reports ImageNamespaceNotAllowed until an annotation shares the image with its namespace', async () => {
    await env.kubectl('create', 'namespace', 'private');
    await cluster().apply(imageIn('private', 'x'));
    await env.machine('shared', {
      ignoreOnDeploy: true,
      vmDiskImageRef: { name: 'x', namespace: 'private' },
    });
    await env.until('shared', isReason('ImageNamespaceNotAllowed'));
    await env.kubectl('annotate', '-n', 'private', 'vmdi', 'x', `vmwright.dev/shared-with=other,${WORK}`);
    await env.until('shared', isReady);
  });

  test('an image that differs from spec.vmDiskImageTemplate is reported', async () => {
    await env.machine('differs', {
      vmDiskImageTemplate: { secretRef: '', sourceType: 'blank', diskSize: '3Gi' },
      ignoreOnDeploy: true,
    });
    const vm = await env.until('differs', (each) => condition(each, 'ImageDiffers') === 'True');
    expect(field(conditionIn(vm, 'ImageDiffers'), 'message')).toContain(
      'in diskSize; the template is ignored',
    );
    await env.until('differs', isReady);
  });

  test('a clone that CDI forbids is reported', async () => {
    const { api } = cluster();
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles/vmwright-kubevirt';
    const { rules } = await get(path);
    const all = Array.isArray(rules) ? rules : [];
    const isClone = (rule: unknown) => JSON.stringify(rule).includes('datavolumes/source');
    await api.merge(path, { rules: all.filter((rule) => !isClone(rule)) });
    const mayClone = async () => {
      const as = `--as=system:serviceaccount:${SYSTEM}:vmwright`;
      const question = ['auth', 'can-i', 'create', 'datavolumes.cdi.kubevirt.io', '--subresource=source'];
      return (await cluster().tryKubectl([...question, '-n', FARM, as])).stdout.trim();
    };
    await expect.poll(mayClone).toBe('no'); // the authorizer follows changes of roles with a delay
    await env.machine('forbidden');
    const vm = await env.until('forbidden', isReason('CloneForbidden'));
    expect(message(vm)).toContain('create datavolumes/source in the namespace vmdi-farm');
    expect(field(conditionIn(vm, 'VolumeReady'), 'reason')).toBe('CloneForbidden');
    await api.merge(path, { rules: all });
    await expect
      .poll(async () => {
        await env.touch('forbidden');
        return condition(await get(`${PATHS.machines}/forbidden`), 'VolumeReady');
      })
      .toBe('True');
    await env.until('forbidden', isReady);
  });

  test('a foreign object with the name of a child is reported and stays unchanged', async () => {
    const foreign = await cluster().api.create(PATHS.kubevirt, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'taken' },
      spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } },
    });
    await env.machine('taken');
    const vm = await env.until('taken', isReason('NameConflict'));
    expect(message(vm)).toContain(
      'The KubeVirt VirtualMachine work/taken exists and was not created for this',
    );
    await env.kubectl('delete', '-n', WORK, 'otvm', 'taken');
    const after = await get(`${PATHS.kubevirt}/taken`);
    expect([after.metadata.uid, after.spec]).toEqual([foreign.metadata.uid, foreign.spec]);
  });

  test('a password whose Secret is missing is reported', async () => {
    const users = [{ name: 'a', passwordSecretRef: { name: 'pw' }, lock_passwd: false }];
    await env.machine('secretive', { users, ignoreOnDeploy: true });
    expect(message(await env.until('secretive', isReason('PasswordSecretMissing')))).toContain(
      'Secret work/pw',
    );
    const password = canary('machine-password');
    await cluster().api.create(PATHS.secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pw' },
      stringData: { password },
    });
    await env.touch('secretive');
    await env.until('secretive', isReady);
    const data = field(await get(`${PATHS.secrets}/secretive-cloudinit`), 'data', 'userdata');
    expect(Buffer.from(String(data), 'base64').toString()).toMatch(/\$6\$/);
    expect(await readFile(env.operator.log, 'utf8')).not.toContain(password);
  });
});

test('the webhook rejects an address that another machine uses; without the webhook, the machine reports AddressConflict', async () => {
  const { api } = cluster();
  await env.network('net-b');
  const at = (ipAddress: string) => ({ interfaces: [{ network: 'net-b', ipAddress }] });
  const spec = { ...at('10.2.0.5/24'), ignoreOnDeploy: true };
  await env.machine('third', at('10.2.0.6/24'));
  await env.until('third', isReady);
  await env.machine('first', at('10.2.0.5/24'));
  await env.until('first', isReady);
  await expect(env.machine('second', spec)).rejects.toThrow(
    'The address 10.2.0.5 on the network work/net-b is used by the VirtualMachine "first" in this namespace',
  );
  const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
  const { webhooks } = await get(`${path}/vmwright`);
  await api.merge(`${path}/vmwright`, { webhooks: [] });
  await expect
    .poll(() =>
      env.machine('second', spec).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  await env.patch('third', { spec: at('10.2.0.5/24') });
  await api.merge(`${path}/vmwright`, { webhooks });
  const isHalted = (vm: KubeObject) =>
    isReason('AddressConflict')(vm) && status(vm, 'printableStatus') === 'Stopped';
  const halted = await env.until('third', isHalted);
  expect(message(halted)).toContain('is used by the VirtualMachine "first" in this namespace');
  const loser = await env.until('second', isReason('AddressConflict'));
  expect(status(loser, 'phase')).toBe('Failed');
  await env.kubectl('delete', '-n', WORK, 'otvm', 'first');
  // Among the machines that wait for an address, one with a disk has priority, so "third" gets the address next.
  // "second" gets it when "third" is deleted.
  await env.until('third', isReady);
  await env.until('second', isReason('AddressConflict'));
  await env.kubectl('delete', '-n', WORK, 'otvm', 'third');
  await env.until('second', isReady);
});

test('machines that need the same missing image at the same time create it once', async () => {
  const spec = {
    vmDiskImageRef: { name: 'shared', namespace: FARM },
    vmDiskImageTemplate: {
      secretRef: '',
      sourceType: 'blank',
      diskSize: '1Gi',
      storageClass: 'wait-for-first-consumer',
    },
  };
  const names = ['shared-1', 'shared-2', 'shared-3'];
  await Promise.all(names.map((name, i) => env.machine(name, { ...spec, ignoreOnDeploy: i === 0 })));
  // Volumes with WaitForFirstConsumer are populated even for a machine that stays stopped.
  for (const name of names) await env.until(name, isReady);
  const images = await cluster().api.list(PATHS.images);
  expect(images.filter(({ metadata }) => metadata.name === 'shared')).toHaveLength(1);
});

const reasonIs = (reason: string) => (vm: KubeObject) =>
  field(conditionIn(vm, 'VolumeReady'), 'reason') === reason;

test('the root disk grows if its storage class allows expansion; otherwise VolumeReady reports the reason', async () => {
  await env.image('growing', { storageClass: 'gp3' });
  const resources = (diskSize: string) => ({ resources: { cpu: 1, memory: '1Gi', diskSize } });
  await env.machine('grower', { vmDiskImageRef: { name: 'growing', namespace: FARM }, ...resources('2Gi') });
  await env.machine('fixed', { ignoreOnDeploy: true });
  const { dataVolume } = { dataVolume: status(await env.until('grower', isReady), 'dataVolume') };
  await env.until('fixed', isReady);
  for (const name of ['grower', 'fixed']) await env.patch(name, { spec: resources('5Gi') });
  await cluster().waitFor(
    `${PATHS.claims}/${dataVolume}`,
    (claim) => field(claim, 'status', 'capacity', 'storage') === '5Gi',
  );
  await env.until('grower', reasonIs('Cloned'));
  const fixed = await env.until('fixed', reasonIs('ExpansionNotSupported'));
  expect(isReady(fixed)).toBe(true);
});

test("the claim of a disk with volume mode Filesystem grows to the new size plus CDI's overhead", async () => {
  const { api } = cluster();
  const config = '/apis/cdi.kubevirt.io/v1beta1/cdiconfigs';
  await api.create(config, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'CDIConfig',
    metadata: { name: 'config' },
    spec: {},
    status: { filesystemOverhead: { global: '0.06' } },
  });
  const disk = status(await env.until('grower', isReady), 'dataVolume');
  const expected = String(Math.ceil((5 * 2 ** 30) / 0.94));
  const grown = await cluster().waitFor(
    `${PATHS.claims}/${disk}`,
    (claim) => field(claim, 'spec', 'resources', 'requests', 'storage') === expected,
  );
  expect(field(grown, 'spec', 'volumeMode')).toBe('Filesystem');
  await api.delete(`${config}/config`);
});

test('a quota that forbids the growth of the root disk is reported, and does not block other changes', async () => {
  const { api } = cluster();
  const quotas = `/api/v1/namespaces/${WORK}/resourcequotas`;
  await env.until('grower', isReady);
  await env.kubectl('create', 'quota', '-n', WORK, 'small', '--hard=requests.storage=1Gi');
  const isEnforced = (quota: KubeObject) => field(quota, 'status', 'used', 'requests.storage') !== undefined;
  await cluster().waitFor(`${quotas}/small`, isEnforced);
  await env.patch('grower', { spec: { resources: { cpu: 1, memory: '2Gi', diskSize: '9Gi' } } });
  const rejected = await env.until('grower', reasonIs('ExpansionRejected'));
  expect(field(conditionIn(rejected, 'VolumeReady'), 'message')).toContain('exceeded quota: small');
  expect(isReady(rejected)).toBe(true);
  const machine = await api.get(`${PATHS.kubevirt}/grower`);
  expect(field(machine, 'spec', 'template', 'spec', 'domain', 'memory', 'guest')).toBe('2Gi');
  await api.delete(`${quotas}/small`);
  await env.touch('grower');
  await env.until('grower', reasonIs('Cloned'));
});

test('an image gets another snapshot once its last snapshot has maxClones clones', async () => {
  await env.image('limited', { maxClones: 1 });
  const spec = { ignoreOnDeploy: true, vmDiskImageRef: { name: 'limited', namespace: FARM } };
  const chosen: unknown[] = [];
  for (const name of ['clone-1', 'clone-2', 'clone-3']) {
    await env.machine(name, spec);
    chosen.push(status(await env.until(name, isReady), 'snapshot'));
  }
  expect(new Set(chosen).size).toBe(3);
  const counts = async () => {
    const image = await get(`${PATHS.images}/limited`);
    return { references: status(image, 'references'), clones: clonesOf(image).slice(0, 3) };
  };
  await expect.poll(counts).toEqual({ references: 3, clones: [1, 1, 1] });
});

test('the deletion policy Orphan keeps the children, without their owner references and the labels of the operator', async () => {
  await env.machine('orphan', { ignoreOnDeploy: true }, { 'vmwright.dev/deletion-policy': 'Orphan' });
  const vm = await env.until('orphan', isReady);
  await env.kubectl('delete', '-n', WORK, 'otvm', 'orphan');
  const children = [
    `${PATHS.kubevirt}/orphan`,
    `${PATHS.secrets}/orphan-cloudinit`,
    `${PATHS.volumes}/${status(vm, 'dataVolume')}`,
  ];
  for (const path of children) {
    const { metadata } = await get(path);
    expect(field(metadata, 'ownerReferences')).toBeUndefined();
    expect(metadata.deletionTimestamp).toBeUndefined();
    expect(metadata.labels ?? {}).not.toHaveProperty(['app.kubernetes.io/managed-by']);
  }
  const { uid } = vm.metadata;
  const acts = (await auditLines(env.operator, `${WORK}/orphan`)).map((line) => {
    expect(line).toMatchObject({
      kind: 'VirtualMachine',
      uid,
      machine: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    return [field(line, 'audit'), field(line, 'resource'), field(line, 'machineName')];
  });
  const [machine, volume] = [`${WORK}/orphan`, `${WORK}/${status(vm, 'dataVolume')}`];
  expect(acts).toEqual([
    ...[
      ['create', 'DataVolume', volume],
      ['create', 'VirtualMachine', machine],
    ],
    ...[
      ['orphan', 'VirtualMachine', machine],
      ['orphan', 'DataVolume', volume],
    ],
  ]);
});

describe('kubectl delete', () => {
  test('kubectl delete --cascade=orphan keeps the running machine and its children', async () => {
    await env.machine('cascade-orphan');
    const vm = await env.until('cascade-orphan', isReady);
    const instance = await uidOf(`${PATHS.instances}/cascade-orphan`);
    await env.kubectl('delete', '-n', WORK, '--cascade=orphan', 'otvm', 'cascade-orphan');
    const children = [
      `${PATHS.kubevirt}/cascade-orphan`,
      `${PATHS.secrets}/cascade-orphan-cloudinit`,
      `${PATHS.volumes}/${status(vm, 'dataVolume')}`,
    ];
    for (const path of children) {
      const { metadata } = await get(path);
      expect(field(metadata, 'ownerReferences')).toBeUndefined();
      expect(metadata.deletionTimestamp).toBeUndefined();
    }
    expect((await get(`${PATHS.instances}/cascade-orphan`)).metadata).toMatchObject({ uid: instance });
  });

  test('kubectl delete --cascade=foreground returns only after the children are gone', async () => {
    await env.machine('foreground');
    const vm = await env.until('foreground', isReady);
    await env.kubectl('delete', '-n', WORK, '--cascade=foreground', '--timeout=60s', 'otvm', 'foreground');
    for (const path of [
      ...[`${PATHS.kubevirt}/foreground`, `${PATHS.instances}/foreground`],
      ...[`${PATHS.secrets}/foreground-cloudinit`, `${PATHS.volumes}/${status(vm, 'dataVolume')}`],
    ])
      await expect(get(path)).rejects.toThrow('not found');
  });

  test('kubectl delete --cascade=foreground is rejected if the deletion policy is Orphan', async () => {
    await env.machine('kept', { ignoreOnDeploy: true }, { 'vmwright.dev/deletion-policy': 'Orphan' });
    await env.until('kept', isReady);
    const foreground = ['delete', '-n', WORK, '--cascade=foreground', 'otvm', 'kept'];
    expect((await cluster().tryKubectl(foreground)).stderr).toContain(
      'Delete the object with --cascade=background',
    );
    await env.kubectl('delete', '-n', WORK, 'otvm', 'kept');
    expect((await get(`${PATHS.kubevirt}/kept`)).metadata.deletionTimestamp).toBeUndefined();
  });
});

test('a paused machine is observed, is not repaired, and is deleted only after it is resumed', async () => {
  await env.machine('paused', { ignoreOnDeploy: true });
  await env.until('paused', isReady);
  await env.patch('paused', { metadata: { annotations: { 'vmwright.dev/paused': 'true' } } });
  await env.until('paused', (vm) => condition(vm, 'Paused') === 'True');
  await cluster().api.delete(`${PATHS.kubevirt}/paused`);
  await env.until('paused', isReason('CreatingMachine'));
  await env.kubectl('delete', '-n', WORK, '--wait=false', 'otvm', 'paused');
  const held = await env.until('paused', (vm) => status(vm, 'phase') === 'Deleting');
  expect(message(held)).toContain('remove the annotation vmwright.dev/paused');
  await env.patch('paused', { metadata: { annotations: { 'vmwright.dev/paused': null } } });
  await cluster().waitForGone(`${PATHS.machines}/paused`);
});

test('without Multus, the operator starts and machines on the pod network run; machines on other networks run once Multus is installed', async () => {
  await env.kubectl('delete', '-f', MULTUS);
  await env.operator.kill();
  await env.operator.start(); // resolves when the operator is ready
  await env.machine('pod-network');
  await env.machine('multus', { interfaces: [{ network: 'late', ipAddress: '10.9.0.1/24' }] });
  await env.until('pod-network', isReady);
  expect(message(await env.until('multus', isReason('MultusNotInstalled')))).toContain(
    `The NetworkAttachmentDefinition ${WORK}/late of spec.interfaces cannot exist`,
  );
  await env.kubectl('apply', '-f', MULTUS);
  await env.kubectl('wait', '--for=condition=Established', '--timeout=60s', '-f', MULTUS);
  await env.until('multus', isReason('NetworkNotFound'));
  await env.network('late');
  await env.until('multus', isReady);
});

// Must be the last test of the file, because it checks the requests of all other tests.
test('the operator uses exactly the permissions that it ships', async () => {
  // Needed, but not in the audit log: the API server checks `create` in addition to `patch` when a server-side apply
  // creates KubeVirt's VirtualMachine.
  const unused = ['create virtualmachines'];
  await expectExactPermissions(env.controlPlane, permissionsFor(VirtualMachine), unused);
});
