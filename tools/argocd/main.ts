/**
 * Writes the health checks for Argo CD to config/argocd; `make generate` runs it. With `--check`, writes nothing and
 * fails if they are out of date; `make check` runs it this way.
 */
import { updateAll } from '../generated/update.ts';
import { argocdFiles } from './checks.ts';

const FOLDER = 'config/argocd';

const files = [...(await argocdFiles())].map(([path, text]) => [`${FOLDER}/${path}`, text] as const);
updateAll(new Map(files), [`${FOLDER}/**/*.{lua,yaml}`]);
