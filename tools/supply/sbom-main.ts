/** `make sbom`: writes the software bill of materials of the shipped packages to dist/vmwright.cdx.json. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { cycloneDx } from './sbom.ts';
import { shipped } from './shipped.ts';

const folder = fileURLToPath(new URL('../../dist/', import.meta.url));
mkdirSync(folder, { recursive: true });
const file = `${folder}vmwright.cdx.json`;
writeFileSync(file, `${JSON.stringify(cycloneDx(shipped(), '@vmwright/operator'), null, 2)}\n`);
console.log(file);
