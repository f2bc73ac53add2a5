import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';
import { PRELUDE, shebang } from './launch.ts';

/**
 * Options of the minifier. Names and lines are kept for stack traces. Characters outside ASCII are escaped, because V8
 * keeps the source in memory and uses two bytes for every character if any character needs two.
 */
const READABLE_ASCII = {
  compress: false,
  mangle: false,
  codegen: { removeWhitespace: false, asciiOnly: true },
} as const;

/** A bundled program. */
export interface Bundle {
  /** Path of the executable file. */
  readonly program: string;
  /** Paths of the source files that the bundle contains. */
  readonly modules: readonly string[];
}

/**
 * Bundles a program with all packages that it imports. Modules that the program imports on demand become separate
 * files.
 * @param name name of the program's file, without extension. @default the name of the source file
 */
export async function bundle(source: URL, folder: string, name?: string): Promise<Bundle> {
  const input = fileURLToPath(source);
  const stem = name ?? basename(input, '.ts');
  const { output } = await build({
    input: { [stem]: input },
    platform: 'node',
    output: {
      dir: folder,
      entryFileNames: '[name].js',
      chunkFileNames: `${stem}/[name].js`,
      comments: false,
      minify: READABLE_ASCII,
    },
    logLevel: 'silent',
  });
  const program = join(folder, `${stem}.js`);
  const code = readFileSync(program, 'utf8').replace(/^#!.*\n/, '');
  writeFileSync(program, `${shebang()}\n${PRELUDE}${code}`);
  chmodSync(program, 0o755);
  return { program, modules: output.flatMap((each) => (each.type === 'chunk' ? each.moduleIds : [])) };
}
