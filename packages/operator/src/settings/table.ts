import type { Flag } from './flags.ts';

/** Headings under which `--help` and docs/configuration.md list the settings, in this order. */
export const GROUPS = [
  'General',
  'Leader election',
  'Endpoints',
  'Traces',
  'VM',
  'VmGroup',
  'VirtualMachine and VMDiskImage',
  'GPUInfo',
] as const;

export type Group = (typeof GROUPS)[number];

/** Description of a flag. Its name is also its key in the config file. */
export interface FlagDescription {
  readonly group: Group;
  /** One or two sentences, in Markdown. */
  readonly description: string;
  /** Environment variable with the same meaning. @default none */
  readonly variable?: string;
  /** Description of the default of a flag that has no constant default. @default none */
  readonly byDefault?: string;
}

/**
 * Environment variable without a flag. It is either a secret, which must not be visible in the process list, or a
 * variable that other programs define.
 */
export interface VariableDescription {
  readonly variable: string;
  readonly group: Group;
  readonly description: string;
  /** Whether its value must not appear in any output. */
  readonly isSecret?: boolean;
}

/** All flags of `vmwright run`. The keys of the config file have the same names. */
export const FLAGS: { readonly [F in Flag]: FlagDescription } = {
  config: {
    group: 'General',
    variable: 'VMWRIGHT_CONFIG',
    byDefault: 'none',
    description: 'YAML file with settings. The keys are the names of the flags without the leading dashes.',
  },
  controllers: {
    group: 'General',
    description:
      'Controllers to run, separated by commas: `vm`, `vmgroup`, `kubevirt` (VirtualMachine and VMDiskImage), `gpuinfo`. `*` means every controller that has its settings and CRDs. `-vm` excludes the controller `vm`. The operator does not start if a controller that the list names cannot run.',
  },
  'cluster-id': {
    group: 'General',
    byDefault: 'UID of the namespace kube-system',
    description:
      "Identifies this cluster in the ownership labels of machines in the cloud and in vCenter. Clusters that share a cloud or a vCenter must use different ids. Otherwise, each cluster reports the other cluster's machines as orphans.",
  },
  namespaces: {
    group: 'General',
    variable: 'WATCH_NAMESPACES',
    byDefault: 'all',
    description:
      'Namespaces to watch, separated by commas. Pass the same list to `vmwright manifests`; see [Terminating namespaces](vm.md#a-namespace-stays-terminating-with---namespaces).',
  },
  namespace: {
    group: 'General',
    variable: 'POD_NAMESPACE',
    byDefault: 'vmwright-system',
    description: 'Namespace of the operator, which contains its Leases and certificates.',
  },
  'log-level': {
    group: 'General',
    description: 'debug, info, warn or error. Audit lines are written at every level.',
  },
  'log-format': {
    group: 'General',
    byDefault: 'text on a terminal, else json',
    description: '`json`: one JSON object per line. `text`: human-readable lines.',
  },
  'leader-elect': {
    group: 'Leader election',
    description: 'Enables leader election, so that several replicas can run.',
  },
  'enable-leader-election': {
    group: 'Leader election',
    byDefault: 'as `--leader-elect`',
    description: 'Alias of `--leader-elect`.',
  },
  'leader-elect-lease-duration': {
    group: 'Leader election',
    description:
      'Time after which other replicas take over from a leader that does not renew its Lease, in whole seconds.',
  },
  'leader-elect-renew-deadline': {
    group: 'Leader election',
    description: 'Time after which a leader that cannot renew its Lease stops acting.',
  },
  'leader-elect-retry-period': {
    group: 'Leader election',
    description: 'Interval at which the leader renews its Lease and the other replicas check the Lease.',
  },
  'status-address': {
    group: 'Endpoints',
    description:
      'Address of `/healthz`, `/readyz` and `/status`. A loopback address also serves `/metrics` and `/debug/…`.',
  },
  'metrics-addr': {
    group: 'Endpoints',
    byDefault: 'as `--status-address`',
    description: 'Alias of `--status-address`.',
  },
  'metrics-bind-address': {
    group: 'Endpoints',
    byDefault: ':8443, or off if `--status-address` is a loopback address',
    description:
      'Address at which clients with a token read `/metrics` and `/debug/…` over HTTPS. `0` disables this address. See [endpoints.md](endpoints.md).',
  },
  'metrics-auth': {
    group: 'Endpoints',
    description:
      '`token`: clients need a token, except on a loopback address. `off`: `/metrics` is also served on `--status-address`, without authentication.',
  },
  'webhook-port': { group: 'Endpoints', description: 'Port of the admission and conversion webhooks.' },
  'webhook-url': {
    group: 'Endpoints',
    byDefault: 'URL of the Service',
    description: 'URL at which the API server reaches an operator that runs outside the cluster.',
  },
  'webhook-cert-dir': {
    group: 'Endpoints',
    byDefault: 'the operator issues its own certificate',
    description:
      'Folder with the files `tls.crt`, `tls.key` and optionally `ca.crt`. Changed files need no restart.',
  },
  'webhook-client-ca': {
    group: 'Endpoints',
    byDefault: 'none',
    description:
      'File with the CA certificates that verify the clients of the admission webhooks. With this setting, admission requests need a client certificate.',
  },
  'webhook-client-name': {
    group: 'Endpoints',
    byDefault: 'all',
    description:
      'Common names that the client certificates of admission requests may have, separated by commas. Requires `--webhook-client-ca`.',
  },
  'cloud-url': {
    group: 'VM',
    variable: 'CLOUD_URL',
    byDefault: 'the controller is off',
    description: 'URL of the private cloud.',
  },
  'cloud-api-key-file': {
    group: 'VM',
    variable: 'CLOUD_API_KEY_FILE',
    byDefault: 'none',
    description:
      'File with the API key, instead of `CLOUD_API_KEY`. Read for each request, so a new key needs no restart.',
  },
  'cloud-ca': {
    group: 'VM',
    variable: 'CLOUD_CA',
    byDefault: "the system's CAs",
    description: 'File with the CA certificates to trust. Read for each connection.',
  },
  'cloud-timeout': {
    group: 'VM',
    description: 'Timeout of a request to the cloud. Each retry of the request has the same timeout.',
  },
  'vm-refresh': {
    group: 'VM',
    description:
      'Interval at which the operator reads state and utilization of the machines. The operator shortens the interval if this is necessary to detect an outage of the cloud within `--vm-unknown-after`. While a machine is being created, the interval is at most 2 s.',
  },
  'vm-unknown-after': {
    group: 'VM',
    description:
      'Time without a response from the cloud after which the condition `Ready` of every VM becomes `Unknown`.',
  },
  'vm-sweep': {
    group: 'VM',
    description:
      'Interval at which the operator searches the cloud for machines without a VM. A machine is deleted or reported only after it has been without a VM for this time.',
  },
  'vm-concurrency': { group: 'VM', description: 'Maximum number of concurrent reconciles of VMs.' },
  'vc-host': {
    group: 'VmGroup',
    variable: 'VC_HOST',
    byDefault: 'the controller is off, unless `--vcenters` is set',
    description: 'Name or address of vCenter.',
  },
  'vc-credentials': {
    group: 'VmGroup',
    variable: 'VC_CREDENTIALS',
    byDefault: 'none',
    description:
      'Folder with the files `VC_USER` and `VC_PASS`, instead of the variables. Read at each login, so a new password needs no restart.',
  },
  'vc-ca': {
    group: 'VmGroup',
    variable: 'VC_CA',
    byDefault: "the system's CAs",
    description: 'File with the CA certificates to trust.',
  },
  'vc-thumbprint': {
    group: 'VmGroup',
    variable: 'VC_THUMBPRINT',
    byDefault: 'none',
    description: "SHA-256 of vCenter's certificate; alternative to `--vc-ca`.",
  },
  insecure: { group: 'VmGroup', description: 'Accepts any certificate of vCenter.' },
  vcenters: {
    group: 'VmGroup',
    byDefault: 'none',
    description: 'File that configures [several vCenters](vmgroup.md#several-vcenters).',
  },
  'vsphere-timeout': { group: 'VmGroup', description: 'Timeout of one call to vCenter.' },
  'vsphere-concurrency': {
    group: 'VmGroup',
    description:
      'Maximum number of concurrent clones on each vCenter. All other tasks of a vCenter together have a separate limit of the same size.',
  },
  'vsphere-datacenter': {
    group: 'VmGroup',
    byDefault: 'the only one',
    description: 'Datacenter for VmGroups without `spec.placement.datacenter`.',
  },
  'vsphere-folder': {
    group: 'VmGroup',
    description: 'VM folder in which the folders of VmGroups without `spec.placement.folder` are created.',
  },
  'vsphere-cluster': {
    group: 'VmGroup',
    byDefault: 'the only one',
    description: 'vSphere cluster for VmGroups without `spec.placement.cluster`.',
  },
  'vsphere-resource-pool': {
    group: 'VmGroup',
    byDefault: "the cluster's",
    description: 'Resource pool for VmGroups without `spec.placement.resourcePool`.',
  },
  'vsphere-datastore': {
    group: 'VmGroup',
    byDefault: "the template's",
    description: 'Datastore for VmGroups without `spec.placement.datastore`.',
  },
  'vsphere-storage-policy': {
    group: 'VmGroup',
    byDefault: 'none',
    description: 'Storage policy for VmGroups without `spec.placement.storagePolicy`.',
  },
  'vsphere-template-folder': {
    group: 'VmGroup',
    byDefault: 'none',
    description: 'Only templates below this folder can be cloned.',
  },
  'vsphere-allow-vm-as-template': {
    group: 'VmGroup',
    description: 'Allows VmGroups to clone machines that are not templates.',
  },
  'vmgroup-sweep': {
    group: 'VmGroup',
    description:
      'Interval at which the operator searches vCenter for machines without a VmGroup. A machine is deleted or reported only after it has been without a VmGroup for this time.',
  },
  'image-namespaces': {
    group: 'VirtualMachine and VMDiskImage',
    byDefault: 'none',
    description:
      'Namespaces with images that VirtualMachines of other namespaces may use, separated by commas. `*` means all namespaces.',
  },
  'image-creation-namespaces': {
    group: 'VirtualMachine and VMDiskImage',
    byDefault: 'none',
    description:
      'Namespaces in which VirtualMachines of other namespaces may create images from `spec.vmDiskImageTemplate`, separated by commas. `*` means all namespaces.',
  },
  'image-prune-after': {
    group: 'VirtualMachine and VMDiskImage',
    description:
      'Time after which an unreferenced VMDiskImage is deleted. `spec.retention` of the VMDiskImage can set another time or keep the image.',
  },
  'image-stalled-after': {
    group: 'VirtualMachine and VMDiskImage',
    description: 'Time without progress after which the status names the object that blocks the import.',
  },
  'image-sync-concurrency': {
    group: 'VirtualMachine and VMDiskImage',
    variable: 'MAX_VMDI_SYNC_CONCURRENCY',
    description: 'Maximum number of images that are synced at the same time.',
  },
  'image-sync-max-backoff': {
    group: 'VirtualMachine and VMDiskImage',
    variable: 'MAX_SYNC_RETRY_BACKOFF_DURATION',
    description:
      'Maximum time from a failed attempt to sync an image to the next attempt. The time is 3 minutes after the first failure and triples with each further failure.',
  },
  'image-sync-timeout': {
    group: 'VirtualMachine and VMDiskImage',
    variable: 'MAX_SYNC_DURATION',
    description:
      'Maximum total time of all attempts to import an image, from the start of the first attempt. The sync fails if the disk is not imported by then. The snapshot of an imported disk may take longer.',
  },
  'image-sync-attempt-timeout': {
    group: 'VirtualMachine and VMDiskImage',
    variable: 'MAX_SYNC_ATTEMPT_DURATION',
    description:
      'Maximum time of the import in one attempt to sync an image. The snapshot after the import has a separate limit of the same length.',
  },
  'image-sync-restarts': {
    group: 'VirtualMachine and VMDiskImage',
    variable: 'MAX_SYNC_ATTEMPT_RETRIES',
    description:
      "Maximum number of restarts of CDI's importer in one attempt to sync an image. After more restarts, the attempt fails.",
  },
  'kubevirt-concurrency': {
    group: 'VirtualMachine and VMDiskImage',
    description:
      'Maximum number of concurrent reconciles of VirtualMachines and, separately, of VMDiskImages.',
  },
  'gpu-source': {
    group: 'GPUInfo',
    description:
      '`real`: the actual GPUs and maintenance of the nodes. `simulated`: random values for both, for tests. Each GPUInfo then has the condition `Simulated`.',
  },
  'gpu-seed': { group: 'GPUInfo', description: 'Seed of the random values of `--gpu-source=simulated`.' },
  'gpu-horizon': {
    group: 'GPUInfo',
    description:
      'Time for which a node without known maintenance counts as available. A GPUInfo with a longer `spec.desAccTime` does not get such a node.',
  },
  'gpu-calendar': {
    group: 'GPUInfo',
    byDefault: 'none',
    description: 'File with [planned maintenance](gpuinfo.md#calendar-file). Read again when it changes.',
  },
  'gpu-maintenance-attribute': {
    group: 'GPUInfo',
    description: 'Custom attribute of ESXi hosts with the start of their maintenance.',
  },
};

/** Environment variables without a flag. */
export const VARIABLES: readonly VariableDescription[] = [
  {
    variable: 'KUBECONFIG',
    group: 'General',
    description: 'Kubeconfig file for an operator that runs outside the cluster.',
  },
  {
    variable: 'VMWRIGHT_REVISION',
    group: 'General',
    description: 'Commit that the program was built from, for the metric `vmwright_build_info`.',
  },
  {
    variable: 'HTTPS_PROXY, HTTP_PROXY, NO_PROXY',
    group: 'General',
    description:
      'Proxies for the API server, the cloud and vCenter; see [Connections](runtime.md#connections).',
  },
  {
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    group: 'Traces',
    description:
      'URL of an OpenTelemetry collector (OTLP over HTTP), such as `http://collector:4318`. Without it, [tracing](endpoints.md#traces) is off.',
  },
  {
    variable: 'OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG',
    group: 'Traces',
    description:
      '`always_on` (default), `always_off`, or `traceidratio` with the share of the traces to record, such as `0.1`.',
  },
  {
    variable: 'OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES',
    group: 'Traces',
    description: 'Name of the service and further attributes of all spans.',
  },
  {
    variable: 'OTEL_EXPORTER_OTLP_HEADERS',
    group: 'Traces',
    description: 'Headers of the requests to the collector, such as its token, from a Secret.',
    isSecret: true,
  },
  {
    variable: 'CLOUD_API_KEY',
    group: 'VM',
    description: 'API key of the cloud, from a Secret. Required, unless `--cloud-api-key-file` is set.',
    isSecret: true,
  },
  {
    variable: 'VC_USER',
    group: 'VmGroup',
    description: 'User of vCenter, from the Secret `vc-creds`. Required, unless `--vc-credentials` is set.',
  },
  {
    variable: 'VC_PASS',
    group: 'VmGroup',
    description: 'Password of `VC_USER`, from the same Secret.',
    isSecret: true,
  },
  {
    variable: 'GOVMOMI_URL',
    group: 'GPUInfo',
    description: 'Same as `VC_HOST`. The connection is shared with VmGroups.',
  },
  { variable: 'GOVMOMI_USERNAME', group: 'GPUInfo', description: 'Same as `VC_USER`.' },
  {
    variable: 'GOVMOMI_PASSWORD',
    group: 'GPUInfo',
    description: 'Same as `VC_PASS`.',
    isSecret: true,
  },
];
