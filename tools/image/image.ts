import { gzipSync } from 'node:zlib';
import { ENVIRONMENT } from '../build/launch.ts';
import { type Base, baseAnnotations } from './base.ts';
import { layerEntries } from './layer.ts';
import { digestOf, type Image, type ImageConfig, type Layout } from './layout.ts';
import { tar } from './tar.ts';

/** User `nonroot` of distroless images, as a number, so that `runAsNonRoot` can verify it. */
const USER = '65532:65532';

/**
 * Writes the operator's image to an OCI layout: one layer with its programs, on top of the base image of each platform.
 * The layer has no code for a specific processor, so all platforms share it.
 * @param packageFolder the operator's package as it is published
 * @param base base image, which contains Node; the annotations of the result name it
 */
export function writeImage(packageFolder: string, base: Base, target: Layout, name: string): void {
  const { layout } = base;
  const archive = tar(layerEntries(packageFolder));
  const layer = target.write('application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(archive, { level: 9 }));
  const images = layout.images().filter(({ config }) => config.os === 'linux');
  if (images.length === 0)
    throw new Error(`${layout.folder} contains no image for Linux; choose another base image`);
  const copied = new Set<string>();
  for (const { digest, mediaType } of images.flatMap(({ layers }) => layers)) {
    if (!copied.has(digest)) target.write(mediaType, layout.blob({ digest }));
    copied.add(digest);
  }
  const extended = images.map(
    ({ config, layers }): Image => ({
      config: configOf(config, digestOf(archive)),
      layers: [...layers, layer],
    }),
  );
  target.writeIndex(extended, name, baseAnnotations(base));
}

function configOf(
  { os, architecture, config, rootfs, history = [] }: ImageConfig,
  layer: string,
): ImageConfig {
  const variables = Object.entries(ENVIRONMENT).map(([variable, value]) => `${variable}=${value}`);
  const inherited = Array.isArray(config?.Env) ? config.Env : [];
  return {
    os,
    architecture,
    config: {
      ...config,
      User: USER,
      WorkingDir: '/',
      Env: [...inherited, ...variables],
      Entrypoint: ['/usr/local/bin/vmwright'],
      Cmd: ['run'],
    },
    rootfs: { type: 'layers', diff_ids: [...rootfs.diff_ids, layer] },
    history: [...history, { created_by: 'make image' }],
  };
}
