/**
 * Generates parts of the documentation from the schemas and tables in packages/operator/src: the reference in the page
 * of each kind (spec, status, conditions), the list of reasons in docs/troubleshooting.md, and the versions in
 * docs/upgrade.md. Part of `make generate`. With `--check`, fails if a page is out of date.
 */
import { readFileSync } from 'node:fs';
import { type ConditionDoc, type FieldDoc, type KindDoc, kindDocs, REJECTIONS } from '@vmwright/operator';
import { update } from '../generated/update.ts';
import { withSection } from './page.ts';
import { tableOf } from './table.ts';

const TROUBLESHOOTING = 'docs/troubleshooting.md';
const UPGRADE = 'docs/upgrade.md';

/**
 * Escapes the text of a schema for a table cell in Markdown. Outside of code, `*` would begin emphasis and `<` a tag;
 * `|` would end the cell.
 */
function markdown(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll(/[*<]/g, '\\$&')))
    .join('')
    .replaceAll('|', '\\|');
}

function fields(rows: readonly FieldDoc[]): string {
  const cells = rows.map(({ path, type, byDefault, description }) => [
    `\`${path}\``,
    type,
    byDefault === '' || byDefault === 'required' ? byDefault : `\`${byDefault}\``,
    markdown(description),
  ]);
  return tableOf([['field', 'type', 'default', 'description'], ...cells]);
}

/** Returns the table of the status fields. It has no column for defaults, because the operator writes the status. */
function statusFields(rows: readonly FieldDoc[]): string {
  const cells = rows.map(({ path, type, description }) => [
    ...[`\`${path}\``, type],
    path === 'conditions' ? 'See [Conditions](#conditions).' : markdown(description),
  ]);
  return tableOf([['field', 'type', 'description'], ...cells]);
}

function rules({ rules: all }: KindDoc): string {
  const lines = all.map(({ path, message }) =>
    path === '' ? `- ${markdown(message)}` : `- \`${path}\`: ${markdown(message)}`,
  );
  return `The API server rejects an object that violates one of these rules:\n\n${lines.join('\n')}`;
}

function reasonsOf({ reasons }: ConditionDoc): string {
  return reasons.length === 0 ? 'as `Ready`' : reasons.map((reason) => `\`${reason}\``).join(', ');
}

function conditions({ conditions: rows }: KindDoc): string {
  const cells = rows.map((row) => [
    ...[`\`${row.type}\``, row.status, reasonsOf(row)],
    ...[row.meaning, row.remedy],
  ]);
  return tableOf([['type', 'status', 'reason', 'meaning', 'what to do'], ...cells]);
}

function rejections(): string {
  const cells = REJECTIONS.map(({ reason, meaning, remedy }) => [`\`${reason}\``, meaning, remedy]);
  return tableOf([['reason', 'meaning', 'what to do'], ...cells]);
}

/**
 * Returns a table of all condition reasons in alphabetical order. A reason has a row for each kind and condition in
 * which it occurs. The condition Paused is left out.
 */
function reasons(kinds: readonly KindDoc[]): string {
  const rows = kinds.flatMap(({ kind, conditions: all }) => {
    const page = `${kind.toLowerCase()}.md`;
    return all
      .filter(({ type }) => type !== 'Paused')
      .flatMap(({ type, status, reasons: named, meaning, remedy }) =>
        named.map((reason) => [
          ...[`\`${reason}\``, `[${kind}](${page}#conditions)`, `\`${type}\` ${status}`],
          ...[meaning, remedy].map((text) => text.replaceAll('](#', `](${page}#`)),
        ]),
      );
  });
  const sorted = rows.toSorted(([a = ''], [b = '']) => (a < b ? -1 : a > b ? 1 : 0));
  return tableOf([['reason', 'kind', 'condition', 'meaning', 'what to do'], ...sorted]);
}

/** Returns the API group and the versions of each kind. */
function versions(kinds: readonly KindDoc[]): string {
  const rows = kinds.map(({ kind, group, versions: [stored = '', ...others] }) => [
    ...[`[\`${kind}\`](${kind.toLowerCase()}.md)`, `\`${group}\``, `\`${stored}\``],
    others.map((name) => `\`${name}\``).join(', '),
  ]);
  return tableOf([['kind', 'group', 'stored version', 'other served versions'], ...rows]);
}

const kinds = kindDocs();
for (const doc of kinds) {
  const path = `docs/${doc.kind.toLowerCase()}.md`;
  let page = readFileSync(path, 'utf8');
  page = withSection(page, 'spec', `${fields(doc.spec)}${doc.rules.length > 0 ? `\n\n${rules(doc)}` : ''}`);
  page = withSection(page, 'status', statusFields(doc.status));
  page = withSection(page, 'conditions', conditions(doc));
  if (doc.kind === 'GPUInfo') page = withSection(page, 'rejections', rejections());
  update(path, page);
}
update(TROUBLESHOOTING, withSection(readFileSync(TROUBLESHOOTING, 'utf8'), 'reasons', reasons(kinds)));
update(UPGRADE, withSection(readFileSync(UPGRADE, 'utf8'), 'versions', versions(kinds)));
