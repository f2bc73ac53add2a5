import { registerHooks } from 'node:module';
import { type Mutant, mutate } from './mutant.ts';

/** URL of the repository root. */
export const ROOT = new URL('../../../../', import.meta.url);

/** Installs a load hook that puts the mutant into its file. The file's module must not be loaded yet. */
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
