import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Layout } from './layout.ts';
import { runPinned } from './pinned-program.ts';

/**
 * Base image for users with access to its registry. It contains Node 24, CA certificates and glibc, but no shell. After
 * each security update, the tag refers to another image. The annotations of the operator's image record the base image
 * that was used (`baseAnnotations`).
 */
export const DISTROLESS = 'gcr.io/distroless/nodejs24-debian13:nonroot';

/** A base image. */
export interface Base {
  readonly layout: Layout;
  /** Reference without digest; undefined if the image was read from a folder and not pulled. */
  readonly name: string | undefined;
}

/**
 * Returns the base image.
 * @param base a folder in the OCI image layout, or the reference of an image, which crane pulls for all platforms
 * @param folder folder for a pulled image
 */
export function baseImage(base: string, folder: string): Base {
  if (existsSync(join(base, 'index.json'))) return { layout: new Layout(base), name: undefined };
  runPinned('crane', 'pull', '--format=oci', base, folder);
  return { layout: new Layout(folder), name: base.replace(/@.*$/, '') };
}

/** Asks the registry for the digest that a tag has now, and returns the reference with this digest. */
export function resolvedReference(reference: string): string {
  return `${reference}@${runPinned('crane', 'digest', reference).stdout.trim()}`;
}

/** Returns the annotations that name the base image, as the OCI image specification defines them. */
export function baseAnnotations({ layout, name }: Base): Readonly<Record<string, string>> {
  return {
    ...(name !== undefined && { 'org.opencontainers.image.base.name': name }),
    'org.opencontainers.image.base.digest': layout.digest(),
  };
}
