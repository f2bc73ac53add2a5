import { UnreadableAnswerError } from '../errors.ts';
import { unescaped } from './text.ts';

const XSI = 'http://www.w3.org/2001/XMLSchema-instance';
const SLASH = 47;
const MARKUP = 33; // <!
const INSTRUCTION = 63; // <?
const COLON = 58;
const EQUALS = 61;
const GREATER = 62;
/** More than any answer has; what is nested deeper is meant to exhaust us. */
const DEEPEST = 200;

/**
 * Goes through the text of an answer from tag to tag, without making a tree of it. What was read last is in its fields.
 * Whoever opens an element comes to its end: by `text`, by `skip`, or by `next` until it says so.
 */
export class Reader {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  /** The prefixes that mean XSI here. vCenter says `xsi`, the simulator `XMLSchema-instance`. */
  #xsi: ReadonlySet<string> = new Set();
  /** The simulator declares the same prefix anew in every tag. */
  #declared:
    | { readonly from: ReadonlySet<string>; readonly prefix: string; readonly to: ReadonlySet<string> }
    | undefined;

  /** As written, with its prefix; ends are told by it. */
  qualified = '';
  /** Without its prefix. */
  name = '';
  isEmpty = false;
  isNil = false;
  /** The value of `xsi:type`, without its prefix. */
  type: string | undefined;
  /** The value of a plain `type`, which is the kind of a reference and has nothing to do with the other. */
  kind: string | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** To the root element, which is the only one outside of another. */
  root(): void {
    const at = this.#nextTag();
    if (at === undefined || this.#text.charCodeAt(at + 1) === SLASH) throw this.#wrong('it has no element');
    this.#open(at);
  }

  /**
   * Calls back for each element in the one that was opened last, with the reader on it, and comes to the end. The
   * callback has to come to the end of each.
   */
  children(visit: () => void): void {
    if (this.isEmpty) return;
    const parent = this.qualified;
    const xsi = this.#xsi;
    if (++this.#depth > DEEPEST) throw this.#wrong(`it is nested deeper than ${DEEPEST} times`);
    for (;;) {
      const at = this.#nextTag();
      if (at === undefined) throw this.#wrong(`<${parent}> has no end`);
      if (this.#text.charCodeAt(at + 1) === SLASH) {
        this.#close(at, parent);
        break;
      }
      this.#open(at);
      visit();
      this.#xsi = xsi;
    }
    this.#depth--;
  }

  /** Whether the element that was opened last has no element in it. */
  get isLeaf(): boolean {
    if (this.isEmpty) return true;
    const here = this.#at;
    const at = this.#nextTag();
    this.#at = here;
    return at !== undefined && this.#text.charCodeAt(at + 1) === SLASH;
  }

  /** The text of the element that was opened last, to its end. */
  text(): string {
    if (this.isEmpty) return '';
    const text = this.#text;
    const end = text.indexOf('<', this.#at);
    if (end !== -1 && text.charCodeAt(end + 1) === SLASH) {
      const raw = text.slice(this.#at, end);
      this.#close(end, this.qualified);
      return unescaped(raw);
    }
    return this.#piecewise();
  }

  /** To the end of the element that was opened last, whatever is in it. */
  skip(): void {
    this.children(() => this.skip());
  }

  /** A text with comments or unparsed parts in it. */
  #piecewise(): string {
    const text = this.#text;
    let found = '';
    for (;;) {
      const at = text.indexOf('<', this.#at);
      if (at === -1) throw this.#wrong(`<${this.qualified}> has no end`);
      found += unescaped(text.slice(this.#at, at));
      if (text.charCodeAt(at + 1) === SLASH) {
        this.#close(at, this.qualified);
        return found;
      }
      if (text.startsWith('<![CDATA[', at)) {
        this.#at = this.#past(']]>', at);
        found += text.slice(at + '<![CDATA['.length, this.#at - ']]>'.length);
      } else if (!this.#passMarkup(at))
        throw this.#wrong(`<${this.qualified}> has elements in place of a text`);
    }
  }

  /** Where the next tag begins, past comments and the like. */
  #nextTag(): number | undefined {
    for (;;) {
      const at = this.#text.indexOf('<', this.#at);
      if (at === -1) return undefined;
      if (!this.#passMarkup(at)) {
        this.#at = at;
        return at;
      }
    }
  }

  #passMarkup(at: number): boolean {
    const text = this.#text;
    const sign = text.charCodeAt(at + 1);
    if (sign === INSTRUCTION) this.#at = this.#past('?>', at);
    else if (sign !== MARKUP) return false;
    else if (text.startsWith('<!--', at)) this.#at = this.#past('-->', at + 4);
    else if (text.startsWith('<![CDATA[', at)) this.#at = this.#past(']]>', at);
    // A document type can define entities that blow up; SOAP forbids it.
    else throw this.#wrong('it declares a document type');
    return true;
  }

  #past(end: string, from: number): number {
    const at = this.#text.indexOf(end, from);
    if (at === -1) throw this.#wrong(`${end} is missing`);
    return at + end.length;
  }

  #open(at: number): void {
    const text = this.#text;
    let end = at + 1;
    let colon = -1;
    for (; ; end++) {
      const code = text.charCodeAt(end);
      if (code === COLON) colon = end;
      // Below 33 are blanks; the text's end is NaN.
      else if (!(code > 32) || code === GREATER || code === SLASH) break;
    }
    if (end === at + 1) throw this.#wrong('it has a tag without a name');
    this.qualified = text.slice(at + 1, end);
    this.name = colon === -1 ? this.qualified : text.slice(colon + 1, end);
    this.isEmpty = false;
    this.isNil = false;
    this.type = undefined;
    this.kind = undefined;
    if (text.charCodeAt(end) === GREATER) this.#at = end + 1;
    else this.#attributes(end);
  }

  #attributes(from: number): void {
    const text = this.#text;
    let at = from;
    // Looked at in the end: a prefix may be declared after its use, in the same tag.
    const prefixed: [name: string, value: string][] = [];
    for (;;) {
      while (text.charCodeAt(at) <= 32) at++;
      const code = text.charCodeAt(at);
      if (code === GREATER) break;
      if (code === SLASH && text.charCodeAt(at + 1) === GREATER) {
        this.isEmpty = true;
        at++;
        break;
      }
      const nameEnd = this.#attributeName(at);
      let open = nameEnd;
      while (text.charCodeAt(open) <= 32) open++;
      if (text.charCodeAt(open) !== EQUALS)
        throw this.#wrong(`<${this.qualified}> has an attribute without a value`);
      do open++;
      while (text.charCodeAt(open) <= 32);
      const quote = text[open];
      const close = quote === '"' || quote === "'" ? text.indexOf(quote, open + 1) : -1;
      if (close === -1) throw this.#wrong(`<${this.qualified}> has an attribute without quotes`);
      const name = text.slice(at, nameEnd);
      const value = text.slice(open + 1, close);
      at = close + 1;
      if (name === 'type') this.kind = unescaped(value);
      else if (name.startsWith('xmlns:')) this.#declare(name.slice('xmlns:'.length), value);
      else if (name.includes(':')) prefixed.push([name, value]);
    }
    this.#at = at + 1;
    for (const [name, value] of prefixed) {
      const colon = name.indexOf(':');
      if (!this.#xsi.has(name.slice(0, colon))) continue;
      const local = name.slice(colon + 1);
      if (local === 'type') this.type = withoutPrefix(value);
      else if (local === 'nil') this.isNil = value === 'true' || value === '1';
    }
  }

  #attributeName(from: number): number {
    let at = from;
    for (; ; at++) {
      const code = this.#text.charCodeAt(at);
      if (!(code > 32) || code === EQUALS) break;
      if (code === GREATER || code === SLASH) break;
    }
    if (at === from) throw this.#wrong(`<${this.qualified}> has no end`);
    return at;
  }

  #declare(prefix: string, namespace: string): void {
    const isXsi = namespace === XSI;
    if (isXsi === this.#xsi.has(prefix)) return;
    const last = this.#declared;
    if (last?.from === this.#xsi && last.prefix === prefix) {
      this.#xsi = last.to;
      return;
    }
    const to = new Set(this.#xsi);
    if (isXsi) to.add(prefix);
    else to.delete(prefix);
    this.#declared = { from: this.#xsi, prefix, to };
    this.#xsi = to;
  }

  #close(at: number, name: string): void {
    const text = this.#text;
    let end = at + 2 + name.length;
    while (text.charCodeAt(end) <= 32) end++;
    if (!text.startsWith(name, at + 2) || text.charCodeAt(end) !== GREATER) {
      throw this.#wrong(`<${name}> ends with ${JSON.stringify(text.slice(at, at + 40))}`);
    }
    this.#at = end + 1;
  }

  #wrong(why: string): UnreadableAnswerError {
    return new UnreadableAnswerError(
      `the answer is not XML that can be read: ${why}, at character ${this.#at}`,
    );
  }
}

function withoutPrefix(name: string): string {
  return unescaped(name.slice(name.indexOf(':') + 1)).trim();
}
