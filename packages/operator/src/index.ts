/** The controllers of vmwright, and the operator that runs them. */
export { type ManifestOptions, type Manifests, manifests } from './manifests.ts';
export { runOperator } from './operator.ts';
export { type Settings, settingsFrom } from './settings/settings.ts';
export { SettingsError } from './settings/values.ts';
export { VCenter } from './vcenter/vcenter.ts';
export { VCenterPool } from './vcenter/vcenter-pool.ts';
export { controlVms } from './vm/controller.ts';
export { collectVmGarbage } from './vm/gc.ts';
export { VM } from './vm/resource.ts';
export { controlVmGroups } from './vmgroup/controller.ts';
export { collectVmGroupGarbage } from './vmgroup/gc.ts';
export { VmGroup } from './vmgroup/resource.ts';
