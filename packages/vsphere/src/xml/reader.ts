import { InvalidResponseError } from '../errors.ts';
import { unescaped } from './text.ts';

const XSI = 'http://www.w3.org/2001/XMLSchema-instance';
const SLASH = 47;
const MARKUP = 33; // <!
const INSTRUCTION = 63; // <?
const COLON = 58;
const EQUALS = 61;
const GREATER = 62;
/**
 * Maximum depth of nested elements, deeper than in any response of vCenter. Limits the memory that a malicious server
 * can use.
 */
const MAX_DEPTH = 200;
/** Maximum length of an element name. Longer than any name of vim25, short enough to quote in an error. */
const MAX_NAME_LENGTH = 256;
/**
 * Maximum length of a cached `TagTemplate`. A longer template is not cached, because copying it would temporarily need
 * many times the memory of the template.
 */
const MAX_TEMPLATE_LENGTH = 1_024;
/** Maximum number of prefixes for the XSI namespace in one scope. Limited: each declaration copies all of them. */
const MAX_XSI_PREFIXES = 16;

/**
 * Text of a start tag between its name and the value of `xsi:type`. `from` has the XSI prefixes in scope before the
 * tag, and `to` those in scope after it.
 */
interface TagTemplate {
  readonly text: string;
  readonly from: ReadonlySet<string>;
  readonly to: ReadonlySet<string>;
}

/**
 * Maximum number of cached templates. The tags of one response use fewer different templates, so a larger cache would
 * not help.
 */
const MAX_TEMPLATES = 4;

/**
 * Pull parser for XML responses. Its fields describe the element that was opened last. The caller must read every
 * opened element to its end: with `text`, `skip` or `children`, or with `enter` and then `next` until `next` returns
 * false.
 *
 * A response has thousands of tags. Therefore the reader builds no tree, extracts only requested text, and caches the
 * attributes of recurring tags.
 */
export class Reader {
  readonly #text: string;
  #at = 0;
  /** Prefixes of the XSI namespace in the current scope. vCenter uses `xsi`, vcsim `XMLSchema-instance`. */
  #xsiPrefixes: ReadonlySet<string> = new Set();
  /** The last declaration that changed `#xsiPrefixes`. Cached, because vcsim declares the same prefix in every tag. */
  #lastDeclaration:
    | { readonly from: ReadonlySet<string>; readonly prefix: string; readonly to: ReadonlySet<string> }
    | undefined;
  readonly #templates: TagTemplate[] = [];
  readonly #localTypes = new Map<string, string>();
  /** Start and end of the name of each entered element, and the XSI prefixes in the element. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #scopes: ReadonlySet<string>[] = [];
  /** Position of the current element's name. It starts at `#nameAt` with its prefix, and at `#localAt` without it. */
  #nameAt = 0;
  #localAt = 0;
  #nameEnd = 0;
  /**
   * Positions of the next `&` and the next carriage return. Text before them needs no decoding. -1 before the first
   * search.
   */
  #ampersand = -1;
  #carriageReturn = -1;

  isEmpty = false;
  isNil = false;
  /** Value of `xsi:type`, without its prefix. */
  type: string | undefined;
  /** Value of the plain attribute `type`: the object type of a reference, unrelated to `xsi:type`. */
  kind: string | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** Name with its prefix; an end tag must repeat it. */
  get qualified(): string {
    return this.#text.slice(this.#nameAt, this.#nameEnd);
  }

  /** Name without its prefix. */
  get name(): string {
    return this.#text.slice(this.#localAt, this.#nameEnd);
  }

  /** Whether the element has this name, ignoring its prefix. */
  isNamed(name: string): boolean {
    return this.#nameEnd - this.#localAt === name.length && this.#text.startsWith(name, this.#localAt);
  }

  /** Opens the root element. */
  root(): void {
    const at = this.#nextTag();
    if (at === undefined || this.#text.charCodeAt(at + 1) === SLASH)
      throw this.#syntaxError('there is no element');
    this.#open(at);
  }

  /** Opens each child of the current element and calls `visit`, which must read the child to its end. */
  children(visit: () => void): void {
    if (this.enter()) while (this.next()) visit();
  }

  /** Enters the current element. @returns false when it is empty; otherwise call `next` until that returns false */
  enter(): boolean {
    if (this.isEmpty) return false;
    if (this.#starts.length >= MAX_DEPTH)
      throw this.#syntaxError(`elements are nested deeper than ${MAX_DEPTH} levels`);
    this.#starts.push(this.#nameAt);
    this.#ends.push(this.#nameEnd);
    this.#scopes.push(this.#xsiPrefixes);
    return true;
  }

  /** Opens the next child of the entered element. @returns false at the end of the element, after leaving it */
  next(): boolean {
    const last = this.#starts.length - 1;
    const start = this.#starts[last] ?? 0;
    const end = this.#ends[last] ?? 0;
    this.#xsiPrefixes = this.#scopes[last] ?? this.#xsiPrefixes;
    const at = this.#nextTag();
    if (at === undefined) throw this.#syntaxError(`<${this.#text.slice(start, end)}> is not closed`);
    if (this.#text.charCodeAt(at + 1) !== SLASH) {
      this.#open(at);
      return true;
    }
    this.#close(at, start, end);
    this.#starts.pop();
    this.#ends.pop();
    this.#scopes.pop();
    return false;
  }

  /** Whether the current element has no child elements. */
  get isLeaf(): boolean {
    if (this.isEmpty) return true;
    const here = this.#at;
    const at = this.#nextTag();
    this.#at = here;
    return at !== undefined && this.#text.charCodeAt(at + 1) === SLASH;
  }

  /** Returns the text of the current element and moves to its end. */
  text(): string {
    if (this.isEmpty) return '';
    const text = this.#text;
    const end = text.indexOf('<', this.#at);
    if (end !== -1 && text.charCodeAt(end + 1) === SLASH) {
      const raw = this.#textBetween(this.#at, end);
      this.#close(end, this.#nameAt, this.#nameEnd);
      return raw;
    }
    return this.#mixedText();
  }

  /** Moves to the end of the current element. */
  skip(): void {
    if (this.enter()) while (this.next()) this.skip();
  }

  /** Reads a text that contains comments or CDATA sections. */
  #mixedText(): string {
    const text = this.#text;
    let content = '';
    for (;;) {
      const at = text.indexOf('<', this.#at);
      if (at === -1) throw this.#syntaxError(`<${this.qualified}> is not closed`);
      content += unescaped(text.slice(this.#at, at));
      if (text.charCodeAt(at + 1) === SLASH) {
        this.#close(at, this.#nameAt, this.#nameEnd);
        return content;
      }
      if (text.startsWith('<![CDATA[', at)) {
        this.#at = this.#endOf(']]>', at);
        content += text.slice(at + '<![CDATA['.length, this.#at - ']]>'.length);
      } else if (!this.#skipMarkup(at))
        throw this.#syntaxError(`<${this.qualified}> contains elements instead of text`);
    }
  }

  /** Moves to the next tag, past comments, CDATA sections and processing instructions. @returns its position, if any */
  #nextTag(): number | undefined {
    for (;;) {
      const at = this.#text.indexOf('<', this.#at);
      if (at === -1) return undefined;
      if (!this.#skipMarkup(at)) {
        this.#at = at;
        return at;
      }
    }
  }

  #skipMarkup(at: number): boolean {
    const text = this.#text;
    const sign = text.charCodeAt(at + 1);
    if (sign === INSTRUCTION) this.#at = this.#endOf('?>', at);
    else if (sign !== MARKUP) return false;
    else if (text.startsWith('<!--', at)) this.#at = this.#endOf('-->', at + 4);
    else if (text.startsWith('<![CDATA[', at)) this.#at = this.#endOf(']]>', at);
    // A document type can define exponentially growing entities; SOAP forbids it.
    else throw this.#syntaxError('it declares a document type');
    return true;
  }

  #endOf(end: string, from: number): number {
    const at = this.#text.indexOf(end, from);
    if (at === -1) throw this.#syntaxError(`${end} is missing`);
    return at + end.length;
  }

  #open(at: number): void {
    const text = this.#text;
    let end = at + 1;
    let colon = -1;
    for (; ; end++) {
      const code = text.charCodeAt(end);
      if (code === COLON) colon = end;
      // Stops at white space (codes up to 32) and at the end of the text, where the code is NaN.
      else if (!(code > 32) || code === GREATER || code === SLASH) break;
    }
    if (end === at + 1) throw this.#syntaxError('a tag has no name');
    if (end - at > MAX_NAME_LENGTH)
      throw this.#syntaxError(`a name has more than ${MAX_NAME_LENGTH} characters`);
    this.#nameAt = at + 1;
    this.#localAt = colon === -1 ? at + 1 : colon + 1;
    this.#nameEnd = end;
    this.isEmpty = false;
    this.isNil = false;
    this.type = undefined;
    this.kind = undefined;
    if (text.charCodeAt(end) === GREATER) this.#at = end + 1;
    else if (!this.#openCached(end)) this.#attributes(end);
  }

  /** Reads the attributes of a tag if it matches a cached template. @returns false if it does not */
  #openCached(from: number): boolean {
    const text = this.#text;
    for (const template of this.#templates) {
      if (template.from !== this.#xsiPrefixes || !text.startsWith(template.text, from)) continue;
      const open = from + template.text.length;
      const close = text.indexOf('"', open);
      if (close === -1 || text.charCodeAt(close + 1) !== GREATER) return false;
      this.#xsiPrefixes = template.to;
      this.type = this.#typeFrom(text.slice(open, close));
      this.#at = close + 2;
      return true;
    }
    return false;
  }

  #typeFrom(value: string): string {
    const known = this.#localTypes.get(value);
    if (known !== undefined) return known;
    const type = withoutPrefix(value);
    this.#localTypes.set(value, type);
    return type;
  }

  /** Returns the decoded text between two positions. There must be no markup between them. */
  #textBetween(from: number, to: number): string {
    const text = this.#text;
    if (this.#ampersand < from) this.#ampersand = indexOrInfinity(text.indexOf('&', from));
    if (this.#carriageReturn < from) this.#carriageReturn = indexOrInfinity(text.indexOf('\r', from));
    const raw = text.slice(from, to);
    return this.#ampersand < to || this.#carriageReturn < to ? unescaped(raw) : raw;
  }

  #attributes(from: number): void {
    const text = this.#text;
    const scope = this.#xsiPrefixes;
    let at = from;
    // Prefixed attributes are evaluated after all others, because a tag may declare a prefix after its use.
    const prefixed: { readonly name: string; readonly value: string; readonly open: number }[] = [];
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
        throw this.#syntaxError(`<${this.qualified}> has an attribute without a value`);
      do open++;
      while (text.charCodeAt(open) <= 32);
      const quote = text[open];
      const close = quote === '"' || quote === "'" ? text.indexOf(quote, open + 1) : -1;
      if (close === -1) throw this.#syntaxError(`<${this.qualified}> has an attribute without quotes`);
      const name = text.slice(at, nameEnd);
      const value = text.slice(open + 1, close);
      at = close + 1;
      if (name === 'type') this.kind = unescaped(value);
      else if (name.startsWith('xmlns:')) this.#declare(name.slice('xmlns:'.length), value);
      else if (name.includes(':')) prefixed.push({ name, value, open: open + 1 });
    }
    this.#at = at + 1;
    for (const { name, value, open } of prefixed) {
      const colon = name.indexOf(':');
      if (!this.#xsiPrefixes.has(name.slice(0, colon))) continue;
      const local = name.slice(colon + 1);
      if (local === 'type') {
        this.type = withoutPrefix(value);
        const isLast = open + value.length + 2 === this.#at && text[open - 1] === '"';
        if (isLast && open - from <= MAX_TEMPLATE_LENGTH && prefixed.length === 1 && this.kind === undefined)
          this.#remember({ text: copyOf(text.slice(from, open)), from: scope, to: this.#xsiPrefixes });
      } else if (local === 'nil') this.isNil = value === 'true' || value === '1';
    }
  }

  #remember(template: TagTemplate): void {
    if (this.#templates.unshift(template) > MAX_TEMPLATES) this.#templates.pop();
  }

  #attributeName(from: number): number {
    let at = from;
    for (; ; at++) {
      const code = this.#text.charCodeAt(at);
      if (!(code > 32) || code === EQUALS) break;
      if (code === GREATER || code === SLASH) break;
    }
    if (at === from) throw this.#syntaxError(`<${this.qualified}> is not closed`);
    return at;
  }

  #declare(prefix: string, namespace: string): void {
    const isXsi = namespace === XSI;
    if (isXsi === this.#xsiPrefixes.has(prefix)) return;
    const last = this.#lastDeclaration;
    if (last?.from === this.#xsiPrefixes && last.prefix === prefix) {
      this.#xsiPrefixes = last.to;
      return;
    }
    if (isXsi && this.#xsiPrefixes.size >= MAX_XSI_PREFIXES)
      throw this.#syntaxError(
        `more than ${MAX_XSI_PREFIXES} prefixes for the XSI namespace are in scope at <${this.qualified}>`,
      );
    const to = new Set(this.#xsiPrefixes);
    if (isXsi) to.add(prefix);
    else to.delete(prefix);
    this.#lastDeclaration = { from: this.#xsiPrefixes, prefix, to };
    this.#xsiPrefixes = to;
  }

  /** Reads the end tag at `at`. It must repeat the name of the start tag, which lies between `start` and `end`. */
  #close(at: number, start: number, end: number): void {
    const text = this.#text;
    let here = at + 2;
    for (let there = start; there < end && text.charCodeAt(here) === text.charCodeAt(there); there++) here++;
    const isSame = here - at - 2 === end - start;
    while (text.charCodeAt(here) <= 32) here++;
    if (!isSame || text.charCodeAt(here) !== GREATER) {
      const name = text.slice(start, end);
      throw this.#syntaxError(`<${name}> is closed by ${JSON.stringify(text.slice(at, at + 40))}`);
    }
    this.#at = here + 1;
  }

  #syntaxError(why: string): InvalidResponseError {
    return new InvalidResponseError(`the response is not valid XML: ${why}, at character ${this.#at}`);
  }
}

function withoutPrefix(name: string): string {
  return unescaped(name.slice(name.indexOf(':') + 1)).trim();
}

/** Returns Infinity for -1, so that the position of a character that was not found is greater than all others. */
function indexOrInfinity(at: number): number {
  return at === -1 ? Number.POSITIVE_INFINITY : at;
}

/** Returns a copy that does not keep the response in memory. Comparing with it is also faster than with a slice. */
function copyOf(text: string): string {
  return Array.from(text).join('');
}
