import { registerHooks } from 'node:module';
import { type Mutant, mutate } from './mutant.ts';

/** URL of the repository root. */
export const ROOT = new URL('../../../../', import.meta.url);

/**
 * Installs a module load hook that applies the mutant to the source of its file. Must be called before that
 * module is loaded.
 */
export function install(mutant: Mutant): void {
  const target = new URL(mutant.file, ROOT).href;
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      if (url !== target || loaded.source === undefined || loaded.source === null) return loaded;
      const source =
        typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source);
      return { ...loaded, source: mutate(source, mutant) };
    },
  });
}
