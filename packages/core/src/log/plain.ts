const REDACTED = '[redacted]';

/** Deeper than this nothing is worth a line; it also ends what contains itself. */
const DEEPEST = 6;

const SECRETS = 'authorization|cookie|token|password|passwd|passphrase|credentials?|secret|key|apikey';
/** `token`, `refresh_token`, `client-secret`; `refreshToken`, `privateKey`. */
const SECRET_NAME = new RegExp(`(^|[-_.])(${SECRETS})$`, 'i');
const SECRET_CAMEL = /[a-z0-9](Authorization|Cookie|Token|Password|Passphrase|Credentials?|Secret|Key)$/;
/** In which kubectl keeps the whole object as it was applied, a Secret's content with it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Whatever a program has to say, as plain data that can be written as JSON: errors as their message, code and cause,
 * nothing endless, nothing that throws; and in place of what is obviously a secret the word that it was left out.
 */
export function plainFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return plainEntries(Object.entries(fields), DEEPEST);
}

function plainEntries(
  entries: readonly (readonly [string, unknown])[],
  depth: number,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of entries) {
    if (value === undefined) continue;
    // Text and bytes are secrets; a number (of tokens), a flag or the name of one within an object may be said.
    const secret = isSecretName(name) && !(typeof value === 'number' || typeof value === 'boolean');
    result[name] = secret ? REDACTED : plain(value, depth - 1);
  }
  return result;
}

function isSecretName(name: string): boolean {
  return name === LAST_APPLIED || SECRET_NAME.test(name) || SECRET_CAMEL.test(name);
}

function plain(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'object':
      if (value === null) return null;
      if (depth <= 0) return '[…]';
      try {
        return plainObject(value, depth);
      } catch {
        return '[unreadable]'; // a getter that throws must not take the line with it
      }
    default:
      return String(value);
  }
}

function plainObject(value: object, depth: number): unknown {
  if (value instanceof Error) return plainError(value, depth);
  if (Array.isArray(value)) return value.map((each) => plain(each, depth - 1));
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Map)
    return plainEntries(
      [...value].map(([key, each]) => [String(key), each]),
      depth,
    );
  if (value instanceof Set) return [...value].map((each) => plain(each, depth - 1));
  if ('toJSON' in value && typeof value.toJSON === 'function') return plain(value.toJSON(), depth - 1);
  const entries = Object.entries(value);
  // The content of a Secret has names that say nothing.
  const isSecret = 'kind' in value && value.kind === 'Secret';
  return plainEntries(
    isSecret
      ? entries.map(([name, each]) => [name, /^(data|stringData)$/.test(name) ? REDACTED : each])
      : entries,
    depth,
  );
}

/** An error with a code was foreseen, and its message is enough; any other wants to be found in the code. */
function plainError(error: Error, depth: number): Record<string, unknown> {
  const code = 'code' in error ? error.code : undefined;
  return plainEntries(
    [
      ['type', error.name],
      ['message', error.message],
      ['code', code],
      ['stack', code === undefined ? error.stack : undefined],
      ['cause', error.cause],
    ],
    depth,
  );
}
