/** The fields of a package.json in `packages/` from which the published package.json is derived. */
export interface SourceManifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly sideEffects: boolean;
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** A published package.json. */
export interface Manifest extends Omit<SourceManifest, 'exports'> {
  readonly engines: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly files: readonly string[];
  readonly repository?: { readonly type: 'git'; readonly url: string; readonly directory: string };
}

/** Version of Node that the packages require: the first that runs `using` and `await using`. */
const ENGINES = { node: '>=24' };

/**
 * Returns the package.json to publish. It exports the compiled files in `lib/`. Its programs are the bundles in `bin/`.
 * It depends on the exact versions of our packages with which it was built.
 * @param versions versions of our packages by name
 * @param repository `owner/name` on GitHub, which npm compares with the provenance of the package.
 * @default no repository
 */
export function publishedManifest(
  source: SourceManifest,
  versions: ReadonlyMap<string, string>,
  repository?: string,
): Manifest {
  const { name, version, description, license, type, sideEffects, exports, bin, dependencies = {} } = source;
  return {
    name,
    version,
    description,
    license,
    type,
    sideEffects,
    ...(repository && {
      repository: {
        type: 'git',
        url: `git+https://github.com/${repository}.git`,
        directory: `packages/${name.replace(/^.*\//, '')}`,
      },
    }),
    engines: ENGINES,
    exports: {
      ...mapValues(exports, (path) => ({
        types: compiled(path, '.d.ts'),
        default: compiled(path, '.js'),
      })),
      './package.json': './package.json',
    },
    ...(bin && { bin: Object.fromEntries(Object.keys(bin).map((each) => [each, `./bin/${each}.js`])) }),
    files: ['lib', ...(bin ? ['bin'] : [])],
    dependencies: mapValues(dependencies, (range, each) => versions.get(each) ?? range),
  };
}

function compiled(path: string, extension: string): string {
  return path.replace(/^\.\/src\//, './lib/').replace(/\.ts$/, extension);
}

function mapValues<T, U>(
  record: Readonly<Record<string, T>>,
  to: (value: T, key: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, to(value, key)]));
}
