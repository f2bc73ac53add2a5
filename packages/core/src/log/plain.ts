const REDACTED = '[redacted]';

/** Maximum nesting of a logged value. Also ends the traversal of cyclic values. */
const MAX_DEPTH = 6;

const SECRETS = 'authorization|cookie|token|password|passwd|passphrase|credentials?|secret|key|apikey';
/** Matches field names such as `token`, `refresh_token` and `client-secret`. */
const SECRET_NAME = new RegExp(`(^|[-_.])(${SECRETS})$`, 'i');
/** Matches field names such as `refreshToken` and `privateKey`. */
const SECRET_CAMEL = /[a-z0-9](Authorization|Cookie|Token|Password|Passphrase|Credentials?|Secret|Key)$/;
/** Annotation in which kubectl stores the applied manifest, including the content of a Secret. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Converts log fields to plain data that can be written as JSON. Never throws. Values that look like secrets become
 * `[redacted]`. Deep or unreadable values become a placeholder. An error becomes an object with its type, message, code
 * and cause. Its stack is added only if it has no code.
 */
export function plainFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return plainEntries(Object.entries(fields), MAX_DEPTH);
}

function plainEntries(
  entries: readonly (readonly [string, unknown])[],
  depth: number,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of entries) {
    if (value === undefined) continue;
    // Numbers (such as a token count) and booleans are not secret. They are logged even if the name suggests a secret.
    const secret = isSecretName(name) && !(typeof value === 'number' || typeof value === 'boolean');
    result[name] = secret ? REDACTED : plain(value, depth - 1);
  }
  return result;
}

/** Whether a field of this name usually holds a secret: `password`, `clientSecret`, `plain_text_passwd`. */
export function isSecretName(name: string): boolean {
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
        return '[unreadable]'; // a getter has thrown
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
  // The whole content of a Secret is redacted, because its keys do not reveal which values are secret.
  const isSecret = 'kind' in value && value.kind === 'Secret';
  return plainEntries(
    isSecret
      ? entries.map(([name, each]) => [name, /^(data|stringData)$/.test(name) ? REDACTED : each])
      : entries,
    depth,
  );
}

/** Errors with a `code` are expected, so their message is enough; any other error is logged with its stack. */
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
