/**
 * Part of `make generate`: writes the health checks for Argo CD to config/argocd. With `--check`, part of `make check`: fails if they are
 * out of date.
 */
import { updateAll } from '../generated/update.ts';
import { argocdFiles } from './checks.ts';

const FOLDER = 'config/argocd';

const files = [...(await argocdFiles())].map(([path, text]) => [`${FOLDER}/${path}`, text] as const);
updateAll(new Map(files), [`${FOLDER}/**/*.{lua,yaml}`]);
