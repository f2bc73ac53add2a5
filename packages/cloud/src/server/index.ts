/** The private cloud's server: what `vmwright-cloud serve` runs. */
export { type Cloud, startCloud } from './cloud.ts';
export { StartError } from './errors.ts';
export { HELP, settingsFrom } from './settings/command-line.ts';
export type { Settings } from './settings/settings.ts';
