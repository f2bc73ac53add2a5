import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Media types of OCI, and those of Docker that registries still serve. */
const INDEX = 'application/vnd.oci.image.index.v1+json';
const INDEXES = [INDEX, 'application/vnd.docker.distribution.manifest.list.v2+json'];
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

/** Reference to a blob. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string; readonly variant?: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Configuration of an image, as far as it is read or changed here. */
export interface ImageConfig {
  readonly os: string;
  readonly architecture: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly rootfs: { readonly type: 'layers'; readonly diff_ids: readonly string[] };
  readonly history?: readonly object[];
}

/** An image for one platform. */
export interface Image {
  readonly config: ImageConfig;
  readonly layers: readonly Descriptor[];
}

interface Index {
  readonly manifests: readonly Descriptor[];
}

interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

/** A folder in the OCI image layout: https://specs.opencontainers.org/image-spec/image-layout. */
export class Layout {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Reads the images of all platforms. */
  images(): readonly Image[] {
    return this.#imagesIn(this.#index());
  }

  /**
   * Returns the digest of the only image in the layout. For an image with several platforms, it is the digest of the
   * image's index. @throws if the layout does not contain exactly one image
   */
  digest(): string {
    const [only, ...others] = this.#index().manifests;
    if (only === undefined || others.length > 0)
      throw new Error(
        `${this.folder} must contain one image, but contains ${others.length + (only ? 1 : 0)}`,
      );
    return only.digest;
  }

  #index(): Index {
    return JSON.parse(readFileSync(join(this.folder, 'index.json'), 'utf8'));
  }

  #imagesIn({ manifests }: Index): readonly Image[] {
    return manifests.flatMap((descriptor) => {
      if (INDEXES.includes(descriptor.mediaType)) return this.#imagesIn(this.#json(descriptor));
      const { config, layers }: Manifest = this.#json(descriptor);
      return { config: this.#json<ImageConfig>(config), layers };
    });
  }

  #json<T>(descriptor: Descriptor): T {
    return JSON.parse(Buffer.from(this.blob(descriptor)).toString());
  }

  /** Reads a blob. @throws if its content does not match the digest */
  blob({ digest }: Pick<Descriptor, 'digest'>): Uint8Array {
    const content = readFileSync(this.#path(digest));
    if (digestOf(content) !== digest)
      throw new Error(`${this.#path(digest)} does not match its digest; download the image again`);
    return content;
  }

  #path(digest: string): string {
    return join(this.folder, 'blobs', digest.replace(':', '/'));
  }

  /** Writes a blob. */
  write(mediaType: string, content: Uint8Array): Descriptor {
    const digest = digestOf(content);
    mkdirSync(join(this.folder, 'blobs/sha256'), { recursive: true });
    writeFileSync(this.#path(digest), content);
    return { mediaType, digest, size: content.length };
  }

  /**
   * Writes an image for several platforms under a name. Its layers must already have been written.
   * @param annotations annotations of the index and of the image of each platform
   */
  writeIndex(images: readonly Image[], name: string, annotations?: Readonly<Record<string, string>>): void {
    const manifests = images.map(({ config, layers }) => ({
      ...this.#writeJson(MANIFEST, {
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: this.#writeJson('application/vnd.oci.image.config.v1+json', config),
        layers,
        annotations,
      }),
      platform: { os: config.os, architecture: config.architecture },
    }));
    const index = this.#writeJson(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests, annotations });
    const named = { ...index, annotations: { 'org.opencontainers.image.ref.name': name } };
    const root = { schemaVersion: 2, mediaType: INDEX, manifests: [named] };
    writeFileSync(join(this.folder, 'index.json'), JSON.stringify(root));
    writeFileSync(join(this.folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  }

  #writeJson(mediaType: string, value: object): Descriptor {
    return this.write(mediaType, Buffer.from(JSON.stringify(value)));
  }
}

export function digestOf(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
