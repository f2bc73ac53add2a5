/**
 * V8 flag of all programs. It is passed on the command line, because V8 reads it only at startup (docs/runtime.md).
 */
export const HEAP_FLAG = '--max-semi-space-size=4';

/** Node flags of all programs. In an image without `env`, the programs get only `HEAP_FLAG`. */
export const NODE_FLAGS: readonly string[] = [
  HEAP_FLAG,
  '--disable-warning=ExperimentalWarning', // hides the warning about node:sqlite, which vmwright-cloud uses
];

/**
 * Environment variables of glibc with which all programs run. Without them, glibc keeps the memory of V8's compiler
 * threads (docs/runtime.md).
 */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

/**
 * First statements of every program, which set a V8 flag. Node rejects this flag in `NODE_OPTIONS`, and the first line
 * of a program has room for only one flag in an image without `env`. V8 reads the flag at each garbage collection, so
 * it may be set at run time.
 */
export const PRELUDE = `import { setFlagsFromString as setV8Flags } from "node:v8";
setV8Flags("--heap-growing-percent=50");
`;

/** First line of an executable program. Linux truncates lines above 255 bytes. */
export function shebang(): string {
  const variables = Object.entries(ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
  return `#!/usr/bin/env -S ${[...variables, 'node', ...NODE_FLAGS].join(' ')}`;
}

/** First line of an executable program in an image that has no `env`. The kernel passes at most one argument. */
export function imageShebang(node: string): string {
  return `#!${node} ${HEAP_FLAG}`;
}
