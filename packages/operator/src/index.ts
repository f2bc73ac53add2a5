/** The controllers of vmwright and the program that runs them. */
export { type ManifestOptions, type Manifests, manifests } from './manifests.ts';
export { runOperator } from './operator.ts';
export { type CloudSettings, type Settings, SettingsError, settingsFrom } from './settings/settings.ts';
export { controlVms } from './vm/controller.ts';
export { VM } from './vm/resource.ts';
export { sweeper } from './vm/sweeper.ts';
