/** Server of the private cloud, as run by `vmwright-cloud serve`. */
export { type Cloud, startCloud } from './cloud.ts';
export { StartError } from './errors.ts';
export { HELP, parseSettings } from './settings/command-line.ts';
export type { Settings } from './settings/settings.ts';
