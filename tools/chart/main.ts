/** `make chart`: writes the Helm chart to `dist/vmwright-<version>.tgz`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { archivePath, chartArchive } from './chart.ts';

const path = archivePath();
mkdirSync(dirname(path), { recursive: true });
writeFileSync(path, chartArchive(process.env.REPOSITORY));
console.log(path);
