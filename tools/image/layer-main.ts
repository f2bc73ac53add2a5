/** Prints a tar archive of the layer that the Containerfile adds to the base image. */
import { fileURLToPath } from 'node:url';
import { layerEntries } from './layer.ts';
import { tar } from './tar.ts';

const packageFolder = fileURLToPath(new URL('../../packages/operator/dist', import.meta.url));
process.stdout.write(tar(layerEntries(packageFolder)));
