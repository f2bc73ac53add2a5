/** `make build`: writes each published package to the folder `dist` of its sources. */
import { fileURLToPath } from 'node:url';
import { build } from './build.ts';

await build(fileURLToPath(new URL('../../packages', import.meta.url)));
