/** V8 flag with which all programs start. V8 reads it only at the start (docs/runtime.md). */
export const HEAP_FLAG = '--max-semi-space-size=4';

/** Flags of Node with which all programs run. */
export const NODE_FLAGS: readonly string[] = [
  HEAP_FLAG,
  '--disable-warning=ExperimentalWarning', // node:sqlite of vmwright-cloud
];

/** Variables of glibc with which all programs run. Without them, it keeps the memory of V8's compiler threads (docs/runtime.md). */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

/**
 * First statements of every program. Node rejects this flag in `NODE_OPTIONS`, and the first line of a program in an image without
 * `env` has room for one flag, so the program sets it itself. V8 reads it at each garbage collection.
 */
export const PRELUDE = `import { setFlagsFromString as setV8Flags } from "node:v8";
setV8Flags("--heap-growing-percent=50");
`;

/** First line of an executable program. Linux truncates lines above 255 bytes. */
export function shebang(): string {
  const variables = Object.entries(ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
  return `#!/usr/bin/env -S ${[...variables, 'node', ...NODE_FLAGS].join(' ')}`;
}

/** First line of an executable program in an image that has no `env`: the kernel passes at most one argument. */
export function imageShebang(node: string): string {
  return `#!${node} ${HEAP_FLAG}`;
}
