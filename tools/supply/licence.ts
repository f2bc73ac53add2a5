/**
 * Licences under which a package may ship with a program under Apache-2.0, if the text of the licence is included.
 * Copyleft licences are excluded. Some require the same licence for the whole program, others require that the sources
 * of the package are published.
 */
const PERMISSIVE: ReadonlySet<string> = new Set([
  ...[
    '0BSD',
    'Apache-2.0',
    'BlueOak-1.0.0',
    'BSD-2-Clause',
    'BSD-3-Clause',
    'CC0-1.0',
    'ISC',
    'MIT',
    'MIT-0',
  ],
  ...['Python-2.0', 'Unlicense', 'Zlib'],
]);

/**
 * Returns whether a package with this licence may ship.
 * @param expression SPDX expression with AND, OR and parentheses: `(MIT OR GPL-3.0-only)`. Anything else counts as
 * unknown.
 */
export function isPermissive(expression: string): boolean {
  const tokens = expression.match(/[()]|[^\s()]+/g) ?? [];
  let position = 0;
  const term = (): boolean => {
    const token = tokens[position++] ?? '';
    if (token !== '(') return PERMISSIVE.has(token);
    const inner = any();
    return tokens[position++] === ')' && inner;
  };
  // AND binds more strongly than OR.
  const all = (): boolean => {
    let result = term();
    while (tokens[position] === 'AND') {
      position++;
      result = term() && result;
    }
    return result;
  };
  const any = (): boolean => {
    let result = all();
    while (tokens[position] === 'OR') {
      position++;
      result = all() || result;
    }
    return result;
  };
  return any() && position === tokens.length;
}

/** Returns why a package must not ship; undefined if it may. */
export function licenceProblem(name: string, version: string, licence: unknown): string | undefined {
  if (typeof licence === 'string' && isPermissive(licence)) return undefined;
  const what =
    licence === undefined
      ? 'names no licence'
      : `has the licence ${JSON.stringify(licence)}, which is not known to be permissive`;
  return `${name} ${version} ${what}, so the package must not ship; replace it`;
}
