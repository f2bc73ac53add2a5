import type { Planted } from './planted.ts';

/** A fence that opens again when the same process leads again. Its calls still end with the term. */
export const LEADING_NOW: Pick<Planted, 'file' | 'find' | 'replace' | 'why'> = {
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
  why: 'in its next term, what was decided in the one before may be wrong: another may have led in between',
};
