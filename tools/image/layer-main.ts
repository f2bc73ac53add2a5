/** Writes the image's own layer as a tar archive to standard output, for the Containerfile. */
import { fileURLToPath } from 'node:url';
import { layerEntries } from './layer.ts';
import { tar } from './tar.ts';

const packageFolder = fileURLToPath(new URL('../../packages/operator/dist', import.meta.url));
process.stdout.write(tar(layerEntries(packageFolder)));
