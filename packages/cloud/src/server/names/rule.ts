/** A line of the list of prohibited names. */
export interface Rule {
  readonly pattern: RegExp;
  /** Why, for who is refused. */
  readonly reason: string | undefined;
}

/** A line that makes no sense; its message says why. */
class RuleError extends Error {
  readonly code = 'RULE';

  constructor(message: string) {
    super(message);
    this.name = 'RuleError';
  }
}

/**
 * `root`, `prod-*`, `vm?` or `/^vm\d+$/i`, then the reason, if there is one. Names and globs stand for the whole name, in
 * whatever case: who may not have `root` may not have `Root`. A regular expression is taken as it is.
 */
export function ruleIn(line: string): Rule {
  const [, pattern = '', reason = ''] = /^(\S+)\s*(.*)$/.exec(line.trim()) ?? [];
  return { pattern: patternOf(pattern), reason: reason === '' ? undefined : reason };
}

function patternOf(text: string): RegExp {
  const [, source, flags] = /^\/(.+)\/([a-z]*)$/.exec(text) ?? [];
  if (source === undefined) return globOf(text);
  try {
    const pattern = new RegExp(source, flags);
    // These keep a place between two uses, and would let every second one through.
    if (pattern.global || pattern.sticky) throw new RuleError('the flags g and y have no meaning here');
    return pattern;
  } catch (error) {
    throw new RuleError(
      `${text} is no regular expression: ${error instanceof Error ? error.message : error}`,
    );
  }
}

function globOf(text: string): RegExp {
  const [strange] = /[^\w.*?-]/.exec(text) ?? [];
  if (strange !== undefined)
    throw new RuleError(`no name has a "${strange}" in it; write /${text}/ for a regular expression`);
  const source = text.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'i');
}
