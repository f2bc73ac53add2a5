import { isSecretName, type KubeObject } from '@vmwright/runtime';

const REDACTED = '[redacted]';

/** Minimum length of a secret that is searched for in texts. Shorter secrets, such as `true`, would match by chance. */
const SHORTEST = 5;

/** Fields with data for the guest or with request headers, which often contain a password. */
const HIDDEN = /^(userData|networkData)(Base64)?$|^extraHeaders$/;

/** Matches names of environment variables that contain a secret. */
const SECRET_VARIABLE = /pass|secret|token|key|credential|database_url/i;

/**
 * Matches the user, token or password in a URL. A password may contain an unescaped @, so it ends at the last @ before
 * the path. A user name without a password must not contain a character that ends a URL, such as a quote. Otherwise,
 * the match would extend to an @ in the text after the URL.
 */
const CREDENTIALS = /(\b[a-z][a-z0-9+.-]*:\/\/)(?:[^\s/@:"<>]*:(?:\\"|[^\s/"])*|[^\s/?#"'`<>]*)@/gi;

/**
 * Removes passwords from objects and texts.
 *
 * Guarantees: user and password are removed from URLs. If the name of a field suggests a secret (`plain_text_passwd`,
 * `password`, `token`), the text of the field is removed. The redactor remembers such a text if it has at least
 * `SHORTEST` characters, and also removes it from everything that it redacts later.
 */
export class Redactor {
  readonly #secrets = new Set<string>();

  /** @param secrets values that must not appear, such as those of environment variables */
  constructor(secrets: Iterable<string | undefined> = []) {
    for (const secret of secrets) this.#add(secret);
  }

  /** Remembers the secrets of an object, because other objects, events and logs may quote them. */
  learn(object: KubeObject): void {
    this.object(object);
  }

  /** Returns a copy of an object without secrets and without managedFields, which only take space. */
  object<T extends KubeObject>(object: T): unknown {
    const { managedFields: _, ...metadata }: Readonly<Record<string, unknown>> = { ...object.metadata };
    return this.#value({ ...object, metadata });
  }

  /** Returns the text without credentials in URLs, and without the secrets that the redactor has seen so far. */
  text(text: string): string {
    let redacted = text.replace(CREDENTIALS, `$1${REDACTED}@`);
    for (const secret of this.#secrets) redacted = redacted.replaceAll(secret, REDACTED);
    return redacted;
  }

  #value(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((each) => this.#value(each));
    if (typeof value !== 'object' || value === null) return value;
    const isVariable = 'name' in value && SECRET_VARIABLE.test(String(value.name));
    const isHidden = (name: string) =>
      name === 'value' ? isVariable : HIDDEN.test(name) || (name !== 'key' && isSecretName(name));
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [
        name,
        isHidden(name) ? this.#hide(each) : this.#value(each),
      ]),
    );
  }

  /** Remembers and hides a secret value. Keeps booleans and numbers, such as `lock_passwd: true`. */
  #hide(value: unknown): unknown {
    if (typeof value === 'boolean' || typeof value === 'number') return value;
    if (typeof value === 'string') this.#add(value);
    return REDACTED;
  }

  #add(secret: string | undefined): void {
    if (secret === undefined || secret.length < SHORTEST) return;
    this.#secrets.add(secret);
    this.#secrets.add(JSON.stringify(secret).slice(1, -1)); // as it appears inside a JSON string
    this.#secrets.add(encodeURIComponent(secret));
    this.#secrets.add(Buffer.from(secret).toString('base64'));
  }
}
