export { Assets } from './assets/assets.ts';
export { budget } from './budget.ts';
export { canary, credentialsIn } from './canaries/canary.ts';
export { CanarySearches } from './canaries/searches.ts';
export { type Audited, Cloud, type CloudOptions, startCloud } from './cloud/cloud.ts';
export { type ConsoleCommand, consoleCommands, shapeOf } from './docs/console.ts';
export { TestbedError } from './errors.ts';
export { ApiError, condition, field, type KubeObject } from './kubernetes/api.ts';
export type { AuditedRequest } from './kubernetes/audit-log.ts';
export { Cluster, type Namespace, type ServiceAccount } from './kubernetes/cluster.ts';
export {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from './kubernetes/control-plane.ts';
export { type KubeVirt, type KubeVirtOptions, startKubeVirt } from './kubevirt/kubevirt.ts';
export { createNode, startKwok } from './kwok/kwok.ts';
export { manifestPath } from './manifests/load.ts';
export { startDeployedOperator } from './operator/deployed-operator.ts';
export { installOperator, type OperatorOptions, operatorSays, startOperator } from './operator/operator.ts';
export { type PgBouncer, startPgBouncer } from './pgbouncer/pgbouncer.ts';
export { Postgres, startPostgres } from './postgres/postgres.ts';
export { Part } from './process/part.ts';
export { freePort, freePortRange } from './process/ports.ts';
export { type Result, run, tryRun } from './process/run.ts';
export { temporaryFolder } from './process/run-supervisor.ts';
export { Random } from './random.ts';
export {
  installMirror,
  type MirrorOptions,
  type MirrorPart,
  SSVIRT_NAMESPACE,
  startDeployedMirror,
  startMirror,
  verifyMirror,
} from './ssvirt/mirror.ts';
export { type NewVm, Ssvirt, type VmRow } from './ssvirt/ssvirt.ts';
export { startToxiproxy, Toxiproxy } from './toxiproxy/toxiproxy.ts';
export { startVcsim, Vcsim, type VcsimOptions } from './vcsim/vcsim.ts';
