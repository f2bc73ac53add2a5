import type { Mutant } from './mutant.ts';

/**
 * Mutant of the fence: the fence of an earlier leadership term opens again when the same process becomes leader again.
 * Requests are still aborted at the end of the term in which they were sent.
 */
export const REOPENED_FENCE: Pick<Mutant, 'file' | 'find' | 'replace' | 'why'> = {
  file: 'packages/runtime/src/controller/work.ts',
  find: 'const fence = fenceOf(key);',
  replace: `const first = fenceOf(key);
  const asking = () => ({
    get isOpen() { return fenceOf(key).isOpen; },
    assertOpen: () => fenceOf(key).assertOpen(),
    close: () => undefined,
    [Symbol.dispose]: () => undefined,
  });
  const nested = () => Object.assign(asking(), { signal: new AbortController().signal });
  const fence = (Object(first).asking ??= Object.assign(asking(), { signal: first.signal, nested }));`,
  why: 'decisions of an earlier term may be wrong, because another replica may have led in between',
};
