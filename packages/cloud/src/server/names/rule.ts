/** Pattern of prohibited server names, parsed from one line of the prohibited-names file. */
export interface Rule {
  readonly pattern: RegExp;
  /** Reason to show in the error for a prohibited name. */
  readonly reason: string | undefined;
}

/** Thrown when a line is not a valid rule. */
class RuleError extends Error {
  readonly code = 'RULE';

  constructor(message: string) {
    super(message);
    this.name = 'RuleError';
  }
}

/**
 * Parses a line: a name, a glob (`prod-*`, `vm?`) or a regular expression (`/^vm\d+$/i`), and an optional reason.
 * A name or glob must match the whole server name, ignoring case. A regular expression is used as written.
 * @throws RuleError
 */
export function parseRule(line: string): Rule {
  const [, pattern = '', reason = ''] = /^(\S+)\s*(.*)$/.exec(line.trim()) ?? [];
  return { pattern: toPattern(pattern), reason: reason === '' ? undefined : reason };
}

function toPattern(text: string): RegExp {
  const [, source, flags] = /^\/(.+)\/([a-z]*)$/.exec(text) ?? [];
  if (source === undefined) return globToPattern(text);
  try {
    const pattern = new RegExp(source, flags);
    // Patterns with these flags keep lastIndex between two tests, and would miss every second match.
    if (pattern.global || pattern.sticky) throw new RuleError('the flags g and y are not supported');
    return pattern;
  } catch (error) {
    throw new RuleError(
      `${text} is not a valid regular expression: ${error instanceof Error ? error.message : error}`,
    );
  }
}

function globToPattern(text: string): RegExp {
  const [invalid] = /[^\w.*?-]/.exec(text) ?? [];
  if (invalid !== undefined)
    throw new RuleError(
      `"${invalid}" is not allowed in a name or glob; write /${text}/ for a regular expression`,
    );
  const source = text.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'i');
}
