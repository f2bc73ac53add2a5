/** The controllers of vmwright, and the operator that runs them. */

export { declaredMetrics, type MetricSection } from './declared-metrics.ts';
export type { ConditionDoc } from './docs/conditions.ts';
export type { FieldDoc, RuleDoc } from './docs/fields.ts';
export { type KindDoc, kindDocs } from './docs/kinds.ts';
export { type PermissionDoc, permissionDocs } from './docs/permissions.ts';
export type {
  Blocker,
  Candidate,
  Facts,
  GpuPool,
  GpuUse,
  Maintenance,
  NodeGpus,
} from './gpuinfo/candidate.ts';
export { controlGpuInfos, type GpuInfoControllerOptions } from './gpuinfo/controller.ts';
export type { FactsSource } from './gpuinfo/facts-source.ts';
export { FACT_KINDS, NodeFacts, type NodeFactsOptions } from './gpuinfo/node-facts.ts';
export { REJECTIONS } from './gpuinfo/rejections.ts';
export { GPUInfo } from './gpuinfo/resource.ts';
export { controlKubevirt } from './kubevirt/controllers.ts';
export { type ManifestOptions, type Manifests, manifests } from './manifests.ts';
export {
  type BatchResult,
  type Database,
  DatabaseError,
  type FailureScope,
  type Session,
  type StatusWrite,
} from './mirror/database.ts';
export type { DeadLetter } from './mirror/dead-letters.ts';
export type { StatusMapping, VmState } from './mirror/mapping.ts';
export { Mirror, type MirrorHealth, type MirrorOptions } from './mirror/mirror.ts';
export type { PlanOptions } from './mirror/plan.ts';
export {
  type DatabaseSettings,
  type FenceMode,
  PostgresDatabase,
  type PostgresDatabaseOptions,
  type SslMode,
} from './mirror/postgres/database.ts';
export type { Row } from './mirror/rows.ts';
export { type MirrorSettingRow, mirrorSettingRows } from './mirror/settings-table.ts';
export { runOperator } from './operator.ts';
export { CONTROLLERS, type ControllerName } from './settings/controllers.ts';
export { type SettingRow, settingRows } from './settings/rows.ts';
export { type Settings, settingsFrom } from './settings/settings.ts';
export { SettingsError } from './settings/values.ts';
export type { ComputeChange, ComputeFacts, HostFacts, MachineFacts } from './vcenter/compute-facts.ts';
export { VCenter } from './vcenter/vcenter.ts';
export { VCenterPool } from './vcenter/vcenter-pool.ts';
export { VirtualMachine } from './virtualmachine/resource.ts';
export { controlVms } from './vm/controller.ts';
export { collectVmGarbage } from './vm/gc.ts';
export { VM } from './vm/resource.ts';
export { VMDiskImage } from './vmdiskimage/resource.ts';
export { controlVmGroups } from './vmgroup/controller.ts';
export { collectVmGroupGarbage } from './vmgroup/gc.ts';
export { VmGroup } from './vmgroup/resource.ts';
