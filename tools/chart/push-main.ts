/**
 * `make push-chart CHARTS=oci://<registry>/<path>`: pushes the chart that `make chart` wrote and prints its reference
 * with the digest.
 */
import { existsSync } from 'node:fs';
import { runPinned } from '../image/pinned-program.ts';
import { archivePath } from './chart.ts';

const archive = archivePath();
const { CHARTS = '' } = process.env;
if (!CHARTS.startsWith('oci://') || !existsSync(archive)) {
  console.error('run `make chart` first, and set CHARTS, such as CHARTS=oci://registry.example/charts');
  process.exit(1);
}
const { stdout, stderr } = runPinned('helm', 'push', archive, CHARTS);
const digest = /^Digest: (sha256:[0-9a-f]{64})$/m.exec(stdout + stderr)?.[1];
if (digest === undefined) throw new Error(`helm push printed no digest: ${stdout}${stderr}`);
console.log(`${CHARTS.slice('oci://'.length)}/vmwright@${digest}`);
