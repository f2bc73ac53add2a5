/** Node flags of all programs. They hide the warning about node:sqlite, which vmwright-cloud uses. */
export const NODE_FLAGS: readonly string[] = ['--disable-warning=ExperimentalWarning'];

/**
 * Environment variables of glibc with which all programs run. Without them, glibc keeps the memory of V8's compiler
 * threads (docs/runtime.md).
 */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

/**
 * Statements at the start of every program, after its imports. They set V8 flags that limit the growth of the heap
 * (docs/runtime.md). V8 reads these flags whenever it resizes the heap, so they may be set at run time. On the command
 * line, V8 would ignore `--semi-space-growth-factor=1`.
 */
export const PRELUDE = `import { setFlagsFromString as setV8Flags } from "node:v8";
setV8Flags("--semi-space-growth-factor=1");
setV8Flags("--heap-growing-percent=50");
`;

/** First line of an executable program. Linux truncates lines above 255 bytes. */
export function shebang(): string {
  const variables = Object.entries(ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
  return `#!/usr/bin/env -S ${[...variables, 'node', ...NODE_FLAGS].join(' ')}`;
}
