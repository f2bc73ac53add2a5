/**
 * Checks that the index of a package exports every type of the package that appears in a public signature, so that
 * users can name it. Part of `make check`; prints a line for each missing type.
 *
 * A signature consists of parameters, return types, public members, base types and type aliases. If a value has no type
 * annotation, the types in `new X()`, `as X` and type arguments of its initializer are checked. Other types that the
 * compiler infers are not found. Members that are marked `@internal` and `implements` clauses are not part of a
 * signature.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync, type StaticExportEntry } from 'oxc-parser';

const PACKAGES = ['core', 'runtime', 'vsphere', 'cloud'];

/** A node of the syntax tree. */
interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A declaration in a file of the package that is being checked. */
interface Target {
  readonly file: string;
  readonly name: string;
}

interface Exported extends Target {
  /**
   * Whether only the type is exported. The type of a class is its instance type, without constructor and static
   * members.
   */
  readonly isType: boolean;
}

interface Module {
  /**
   * Top-level declarations by name. A value and a type may share a name, and a function may have several signatures.
   */
  readonly declarations: ReadonlyMap<string, readonly Node[]>;
  readonly imports: ReadonlyMap<string, Target>;
  readonly exports: readonly StaticExportEntry[];
}

const modules = new Map<string, Module>();

function moduleOf(file: string): Module {
  const known = modules.get(file);
  if (known !== undefined) return known;
  const source = readFileSync(file, 'utf8');
  const { program, module, comments, errors } = parseSync(file, source);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  const internal = new Set<number>();
  for (const { value, end } of comments)
    if (value.includes('@internal')) internal.add(end + (/^\s*/.exec(source.slice(end))?.[0].length ?? 0));
  const declarations = new Map<string, Node[]>();
  for (const statement of program.body) {
    const declaration =
      statement.type === 'ExportNamedDeclaration' && statement.declaration !== null
        ? statement.declaration
        : statement;
    const declarators: readonly unknown[] =
      declaration.type === 'VariableDeclaration' ? declaration.declarations : [declaration];
    for (const each of declarators) {
      const name = isNode(each) ? nameIn(each.id) : undefined;
      if (!isNode(each) || name === undefined) continue;
      const declared = withMembers(each, ({ start }) => typeof start !== 'number' || !internal.has(start));
      const others = declarations.get(name);
      if (others === undefined) declarations.set(name, [declared]);
      else others.push(declared);
    }
  }
  const imports = new Map<string, Target>();
  for (const { moduleRequest, entries } of module.staticImports) {
    if (!moduleRequest.value.startsWith('.')) continue;
    for (const { importName, localName } of entries)
      if (importName.name != null)
        imports.set(localName.value, {
          file: join(dirname(file), moduleRequest.value),
          name: importName.name,
        });
  }
  const parsed = { declarations, imports, exports: module.staticExports.flatMap(({ entries }) => entries) };
  modules.set(file, parsed);
  return parsed;
}

/** Yields the declarations that a module exports, including those of the namespaces that it exports. */
function* exportsOf(file: string): Generator<Exported> {
  for (const { moduleRequest, importName, localName, isType } of moduleOf(file).exports) {
    if (moduleRequest === null) {
      if (localName.name != null) yield { ...resolve({ file, name: localName.name }), isType };
    } else if (moduleRequest.value.startsWith('.')) {
      const from = join(dirname(file), moduleRequest.value);
      if (importName.name == null) yield* exportsOf(from);
      else yield { ...resolve({ file: from, name: importName.name }), isType };
    }
  }
}

/** Follows imports and re-exports to the declaration. */
function resolve(target: Target): Target {
  const { declarations, imports, exports } = moduleOf(target.file);
  if (declarations.has(target.name)) return target;
  const imported = imports.get(target.name);
  if (imported !== undefined) return resolve(imported);
  for (const { moduleRequest, importName, exportName } of exports) {
    if (moduleRequest === null || !moduleRequest.value.startsWith('.')) continue;
    const from = join(dirname(target.file), moduleRequest.value);
    if (exportName.name === target.name && importName.name != null)
      return resolve({ file: from, name: importName.name });
    if (exportName.name == null) {
      const found = resolve({ file: from, name: target.name });
      if (moduleOf(found.file).declarations.has(found.name)) return found;
    }
  }
  return target;
}

/** Yields the names of the types in the public part of a declaration. */
function* namesIn(node: unknown): Generator<string> {
  if (Array.isArray(node)) for (const each of node) yield* namesIn(each);
  if (!isNode(node)) return;
  switch (node.type) {
    case 'TSTypeReference':
      yield* nameOf(node.typeName);
      return yield* namesIn(node.typeArguments);
    case 'TSInterfaceHeritage':
      yield* nameOf(node.expression);
      return yield* namesIn(node.typeArguments);
    case 'ClassDeclaration':
      yield* nameOf(node.superClass);
      return yield* namesIn([node.typeParameters, node.superTypeArguments, node.body]);
    case 'MethodDefinition':
    case 'TSAbstractMethodDefinition':
      return isPublic(node) ? yield* namesIn(node.value) : undefined;
    case 'PropertyDefinition':
    case 'TSAbstractPropertyDefinition':
      return isPublic(node) ? yield* annotated(node.typeAnnotation, node.value) : undefined;
    case 'FunctionDeclaration':
    case 'TSDeclareFunction':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return yield* namesIn([node.typeParameters, node.params, node.returnType]);
    case 'VariableDeclarator':
      return yield* annotated(isNode(node.id) ? node.id.typeAnnotation : undefined, node.init);
    case 'AssignmentPattern':
      return yield* annotated(isNode(node.left) ? node.left.typeAnnotation : undefined, node.right);
    case 'TSTypeQuery':
      return; // the type of a value (`typeof x`), which needs no exported name
    default:
      for (const [field, value] of Object.entries(node)) if (field !== 'key') yield* namesIn(value);
  }
}

/** Yields the types in the annotation or, without an annotation, in the initializer. */
function* annotated(annotation: unknown, initializer: unknown): Generator<string> {
  if (isNode(annotation)) return yield* namesIn(annotation);
  if (!isNode(initializer)) return;
  switch (initializer.type) {
    case 'NewExpression':
      yield* nameOf(initializer.callee);
      return yield* namesIn(initializer.typeArguments);
    case 'CallExpression':
      return yield* namesIn(initializer.typeArguments);
    case 'TSAsExpression':
      return yield* namesIn(initializer.typeAnnotation);
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return yield* namesIn(initializer);
  }
}

function* nameOf(expression: unknown): Generator<string> {
  const name = nameIn(expression);
  if (name !== undefined) yield name;
}

/** Yields the names of all type parameters in a declaration. They do not refer to declarations of the module. */
function* typeParametersIn(node: unknown): Generator<string> {
  if (Array.isArray(node)) for (const each of node) yield* typeParametersIn(each);
  if (!isNode(node)) return;
  if (node.type === 'TSTypeParameter') yield* nameOf(node.name);
  if (node.type === 'TSMappedType') yield* nameOf(node.key);
  for (const value of Object.values(node)) yield* typeParametersIn(value);
}

function isPublic({ key, accessibility }: Node): boolean {
  return accessibility !== 'private' && isNode(key) && key.type !== 'PrivateIdentifier';
}

/**
 * Returns the public declarations of a name. For an overloaded function these are its overloads, not its
 * implementation.
 */
function signaturesOf({ file, name, isType }: Exported): readonly Node[] {
  const declarations = moduleOf(file).declarations.get(name) ?? [];
  const overloads = declarations.filter(({ type }) => type === 'TSDeclareFunction');
  if (overloads.length > 0) return overloads;
  const isInstanceMember = (member: Node) => member.kind !== 'constructor' && member.static !== true;
  return isType ? declarations.map((each) => withMembers(each, isInstanceMember)) : declarations;
}

/** Returns a class or interface with only some of its members, and any other declaration unchanged. */
function withMembers(node: Node, keeps: (member: Node) => boolean): Node {
  if (!isNode(node.body) || !Array.isArray(node.body.body)) return node;
  if (node.type !== 'ClassDeclaration' && node.type !== 'TSInterfaceDeclaration') return node;
  const members = node.body.body.filter((member) => isNode(member) && keeps(member));
  return { ...node, body: { ...node.body, body: members } };
}

/**
 * Whether users can name a type through an exported interface that has a member of that name: `Vim25['VirtualDisk']`.
 */
function isRegistered({ file, name }: Target, exported: Iterable<Exported>): boolean {
  for (const each of exported) {
    if (each.file !== file) continue;
    for (const { type, body } of signaturesOf(each)) {
      if (type !== 'TSInterfaceDeclaration' || !isNode(body) || !Array.isArray(body.body)) continue;
      if (body.body.some((member) => isNode(member) && nameIn(member.key) === name)) return true;
    }
  }
  return false;
}

function nameIn(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Identifier' && typeof node.name === 'string' ? node.name : undefined;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** Returns a line for each type of the package that a public signature names and the index does not export. */
function missingIn(index: string): readonly string[] {
  const id = ({ file, name }: Target) => `${file} ${name}`;
  const exported = new Map([...exportsOf(index)].map((target) => [id(target), target]));
  const missing = new Map<string, string>();
  for (const each of exported.values()) {
    const { file, name } = each;
    const signatures = signaturesOf(each);
    const parameters = new Set(typeParametersIn(signatures));
    for (const used of namesIn(signatures)) {
      const { declarations, imports } = moduleOf(file);
      if (parameters.has(used) || !(declarations.has(used) || imports.has(used))) continue;
      const target = resolve({ file, name: used });
      if (exported.has(id(target)) || missing.has(id(target))) continue;
      if (isRegistered(target, exported.values())) continue;
      missing.set(
        id(target),
        `${target.file}: ${target.name} is in the signature of ${name}; export it from ${index}`,
      );
    }
  }
  return [...missing.values()].toSorted();
}

for (const name of PACKAGES) {
  const index = `packages/${name}/src/index.ts`;
  if (!existsSync(index)) continue;
  for (const line of missingIn(index)) {
    console.error(line);
    process.exitCode = 1;
  }
}
