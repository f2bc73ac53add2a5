import packageJson from '../package.json' with { type: 'json' };

/** Version of the programs of this package. */
export const VERSION = packageJson.version;
