import { registerHooks } from 'node:module';
import { type Planted, plantedIn } from './planted.ts';

/** The repository's root. */
export const ROOT = new URL('../../../../', import.meta.url);

/** From here on, whoever loads the file gets it with the bug. Its module must not be loaded yet. */
export function plant(bug: Planted): void {
  const target = new URL(bug.file, ROOT).href;
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      if (url !== target || loaded.source === undefined || loaded.source === null) return loaded;
      const source =
        typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source);
      return { ...loaded, source: plantedIn(source, bug) };
    },
  });
}
