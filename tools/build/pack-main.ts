/** `make pack`: packs the packages that `make build` has written. */
import { fileURLToPath } from 'node:url';
import { pack } from './pack.ts';

const root = new URL('../../', import.meta.url);
const tarballs = pack(fileURLToPath(new URL('packages', root)), fileURLToPath(new URL('dist', root)));
for (const path of Object.values(tarballs)) console.log(path);
