/**
 * Writes docs/api.md: every export of `@vmwright/runtime` with its declaration and doc comment. Part of `make
 * generate`; with `--check`, fails if the page is out of date.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseSync, type Statement } from 'oxc-parser';
import { update } from '../generated/update.ts';

const ROOT = 'packages/runtime/src';
const CORE = 'packages/core/src';
const PAGE = 'docs/api.md';
const ENTRIES = [
  { title: '@vmwright/runtime', file: join(ROOT, 'index.ts') },
  { title: '@vmwright/runtime/testing', file: join(ROOT, 'testing/index.ts') },
];

interface Exported {
  readonly name: string;
  readonly file: string;
}

interface Module {
  readonly source: string;
  readonly body: readonly Statement[];
  /** Doc comments by the offset of the declaration that follows. */
  readonly docs: ReadonlyMap<number, string>;
}

const modules = new Map<string, Module>();

function moduleOf(file: string): Module {
  const cached = modules.get(file);
  if (cached !== undefined) return cached;
  const source = readFileSync(file, 'utf8');
  const { program, comments } = parseSync(file, source);
  const docs = new Map<number, string>();
  for (const { type, value, end } of comments) {
    if (type !== 'Block' || !value.startsWith('*')) continue;
    const next = end + (source.slice(end).match(/^\s*/)?.[0].length ?? 0);
    docs.set(next, value);
  }
  const parsed = { source, body: program.body, docs };
  modules.set(file, parsed);
  return parsed;
}

/** Yields the exports of a module with the file that declares each. */
function* exportsOf(file: string): Generator<Exported> {
  for (const statement of moduleOf(file).body) {
    if (statement.type === 'ExportAllDeclaration') {
      const from = sourceOf(file, statement.source.value);
      if (statement.exported === null) yield* exportsOf(from);
      else if (statement.exported.type === 'Identifier') yield { name: statement.exported.name, file: from };
    }
    if (statement.type !== 'ExportNamedDeclaration') continue;
    const { source, specifiers, declaration } = statement;
    if (source !== null) {
      for (const { local } of specifiers)
        if (local.type === 'Identifier') yield* declaredIn(sourceOf(file, source.value), local.name);
    } else if (declaration !== null) {
      for (const name of namesOf(declaration)) yield { name, file };
    }
  }
}

/** Returns the file that a module imports by `@vmwright/core` or by a relative path. */
function sourceOf(file: string, specifier: string): string {
  return specifier === '@vmwright/core' ? join(CORE, 'index.ts') : join(dirname(file), specifier);
}

/** Finds the declaration of a name through modules that re-export it. */
function* declaredIn(file: string, name: string): Generator<Exported> {
  for (const exported of exportsOf(file)) if (exported.name === name) return yield exported;
}

type Declaration = NonNullable<Extract<Statement, { type: 'ExportNamedDeclaration' }>['declaration']>;

function namesOf(declaration: Declaration): string[] {
  if (declaration.type === 'VariableDeclaration')
    return declaration.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []));
  return 'id' in declaration && declaration.id?.type === 'Identifier' ? [declaration.id.name] : [];
}

/** Renders all declarations of a name: a value and a type can share a name, and a function can have overloads. */
function section({ name, file }: Exported): string {
  const { source, body, docs } = moduleOf(file);
  const parts: string[] = [];
  const texts: string[] = [];
  for (const statement of body) {
    if (statement.type !== 'ExportNamedDeclaration' || statement.declaration === null) continue;
    if (!namesOf(statement.declaration).includes(name)) continue;
    const doc = docs.get(statement.start);
    if (doc !== undefined) texts.push(prose(doc));
    parts.push(signature(statement.declaration, source, docs));
  }
  if (parts.length === 0) {
    const names = [...exportsOf(file)].map((each) => `\`${each.name}\``);
    texts.push(`Namespace with ${[...new Set(names)].join(', ')}.`);
  }
  const overloaded = parts.length > 1 && parts.every((part) => part.startsWith('function'));
  const shown = overloaded ? parts.slice(0, -1) : parts; // the last signature is the implementation
  const code = shown.length === 0 ? '' : `\n\n\`\`\`ts\n${shown.join('\n\n')}\n\`\`\``;
  return `#### ${name}\n\n${[...new Set(texts)].join('\n\n')}${code}`.replace('\n\n\n\n', '\n\n');
}

function signature(declaration: Declaration, source: string, docs: ReadonlyMap<number, string>): string {
  const text = (from: number, to: number) => source.slice(from, to).trim();
  switch (declaration.type) {
    case 'FunctionDeclaration':
    case 'TSDeclareFunction':
      return declaration.body == null
        ? text(declaration.start, declaration.end)
        : `${text(declaration.start, declaration.body.start)};`;
    case 'ClassDeclaration': {
      const members = declaration.body.body.flatMap((member) => {
        if (!('key' in member) || member.key.type === 'PrivateIdentifier') return [];
        if ('accessibility' in member && member.accessibility === 'private') return [];
        const end =
          member.type === 'MethodDefinition'
            ? (member.value.body?.start ?? member.end)
            : member.type === 'PropertyDefinition' && member.value !== null && member.value.type !== 'Literal'
              ? member.value.start
              : member.end;
        const doc = docs.get(member.start);
        const code = text(member.start, end).replace(/ =$/, '').replace(/;?$/, ';');
        return [doc === undefined ? `  ${code}` : `  /*${doc}*/\n  ${code}`];
      });
      return `${text(declaration.start, declaration.body.start)} {\n${members.join('\n')}\n}`;
    }
    case 'VariableDeclaration': {
      const [first] = declaration.declarations;
      if (first?.init == null) return text(declaration.start, declaration.end);
      const short = first.init.end - first.init.start < 80;
      return short
        ? text(declaration.start, declaration.end)
        : `${text(declaration.start, first.init.start)} …`;
    }
    default:
      return text(declaration.start, declaration.end);
  }
}

/** Converts a doc comment to Markdown, with its tags as paragraphs. */
function prose(doc: string): string {
  return doc
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, ''))
    .join('\n')
    .replace(/^\*/, '')
    .replace(/^@(\w+)/gm, '\n_$1_')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

const page = ENTRIES.map(({ title, file }) => {
  const folders = Map.groupBy(
    new Map([...exportsOf(file)].map((each) => [each.name, each])).values(),
    (each) =>
      relative(each.file.startsWith(CORE) ? CORE : ROOT, dirname(each.file)).replace(/^\.?$/, 'index'),
  );
  const sections = [...folders]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([folder, all]) => `### ${folder}\n\n${all.map(section).join('\n\n')}`);
  return `## ${title}\n\n${sections.join('\n\n')}`;
}).join('\n\n');
const head = '# API\n\nGenerated by `make generate`; do not edit. Overview: [runtime.md](runtime.md).';
update(PAGE, `${head}\n\n${page}\n`);
