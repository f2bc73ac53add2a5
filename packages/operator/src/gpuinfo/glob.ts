/** Pattern of names: `*` stands for any characters. With `anyCharacter`, `?` stands for one character. */
export class Glob {
  readonly #parts: readonly string[];
  readonly #any: string | undefined;

  constructor(pattern: string, options: { readonly anyCharacter?: '?' } = {}) {
    this.#parts = pattern.split('*');
    this.#any = options.anyCharacter;
  }

  /**
   * Finds the parts between the `*` one after the other, because a regular expression with many `.*` can take
   * exponential time.
   */
  matches(text: string): boolean {
    const [first = '', ...rest] = this.#parts;
    const last = rest.pop();
    if (last === undefined) return text.length === first.length && this.#isAt(first, text, 0);
    if (!this.#isAt(first, text, 0)) return false;
    let at = first.length;
    for (const part of rest) {
      while (at + part.length <= text.length && !this.#isAt(part, text, at)) at++;
      if (at + part.length > text.length) return false;
      at += part.length;
    }
    return text.length - last.length >= at && this.#isAt(last, text, text.length - last.length);
  }

  #isAt(part: string, text: string, at: number): boolean {
    if (this.#any === undefined || !part.includes(this.#any)) return text.startsWith(part, at);
    if (at + part.length > text.length) return false;
    for (let index = 0; index < part.length; index++)
      if (part[index] !== this.#any && part[index] !== text[at + index]) return false;
    return true;
  }
}
