/**
 * Writes the permissions in docs/security.md from the declarations in packages/operator/src. Part of `make generate`;
 * with `--check`, fails if the page is out of date.
 */
import { readFileSync } from 'node:fs';
import { permissionDocs } from '@vmwright/operator';
import { update } from '../generated/update.ts';
import { withSection } from './page.ts';
import { tableOf } from './table.ts';

const PAGE = 'docs/security.md';

const rows = permissionDocs().map(({ controller, resource, verbs, isOwnNamespace }) => [
  controller === undefined ? 'all' : `\`${controller}\``,
  resource.replace(/^[^ ]+/, '`$&`'),
  verbs,
  isOwnNamespace ? "the operator's namespace" : 'cluster',
]);
const table = tableOf([['controller', 'resource', 'verbs', 'where'], ...rows]);
update(PAGE, withSection(readFileSync(PAGE, 'utf8'), 'permissions', table));
