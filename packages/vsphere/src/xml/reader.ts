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
/** Longer than any name of vim25, and short enough to be quoted in an error. */
const LONGEST_NAME = 256;
/** Longer heads are not remembered: that saves no work, and copying one takes many times its memory. */
const LONGEST_HEAD = 1_024;
/** Maximum number of prefixes that may mean XSI at the same time. Each declaration copies the set of them. */
const MAX_XSI_PREFIXES = 16;

/** How a tag went on after its name, up to the value of its `xsi:type`, and which prefixes mean XSI before and in it. */
interface Head {
  readonly text: string;
  readonly from: ReadonlySet<string>;
  readonly to: ReadonlySet<string>;
}

/** More than an answer has in turn. */
const HEADS = 4;

/**
 * Goes through the text of an answer from tag to tag, without making a tree of it. What was read last is in its fields.
 * Whoever opens an element comes to its end: by `text`, by `skip`, by `children`, or by `next` until it says so.
 *
 * Thousands of tags a call, so what is not asked for is not cut out of the text, and nothing is made for a tag that
 * looks like one before it.
 */
export class Reader {
  readonly #text: string;
  #at = 0;
  /** The prefixes that mean XSI here. vCenter says `xsi`, the simulator `XMLSchema-instance`. */
  #xsi: ReadonlySet<string> = new Set();
  /** The simulator declares the same prefix anew in every tag. */
  #declared:
    | { readonly from: ReadonlySet<string>; readonly prefix: string; readonly to: ReadonlySet<string> }
    | undefined;
  readonly #heads: Head[] = [];
  readonly #types = new Map<string, string>();
  /** The elements that are entered: where the name of each is, and what means XSI in it. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #scopes: ReadonlySet<string>[] = [];
  /** Of the element that was opened last: its name, with its prefix and without. */
  #nameAt = 0;
  #localAt = 0;
  #nameEnd = 0;
  /** Where the next sign is that stands for another, as far as was looked. */
  #ampersand = -1;
  #return = -1;

  isEmpty = false;
  isNil = false;
  /** The value of `xsi:type`, without its prefix. */
  type: string | undefined;
  /** The value of a plain `type`, which is the kind of a reference and has nothing to do with the other. */
  kind: string | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** As written, with its prefix; ends are told by it. */
  get qualified(): string {
    return this.#text.slice(this.#nameAt, this.#nameEnd);
  }

  /** Without its prefix. */
  get name(): string {
    return this.#text.slice(this.#localAt, this.#nameEnd);
  }

  /** Whether that is its name, without its prefix. */
  isNamed(name: string): boolean {
    return this.#nameEnd - this.#localAt === name.length && this.#text.startsWith(name, this.#localAt);
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
    if (this.enter()) while (this.next()) visit();
  }

  /** Goes into the element that was opened last. @returns whether `next` is to be called until it says no */
  enter(): boolean {
    if (this.isEmpty) return false;
    if (this.#starts.length >= DEEPEST) throw this.#wrong(`it is nested deeper than ${DEEPEST} times`);
    this.#starts.push(this.#nameAt);
    this.#ends.push(this.#nameEnd);
    this.#scopes.push(this.#xsi);
    return true;
  }

  /** To the next element in the one that was entered last, or to its end. */
  next(): boolean {
    const last = this.#starts.length - 1;
    const start = this.#starts[last] ?? 0;
    const end = this.#ends[last] ?? 0;
    this.#xsi = this.#scopes[last] ?? this.#xsi;
    const at = this.#nextTag();
    if (at === undefined) throw this.#wrong(`<${this.#text.slice(start, end)}> has no end`);
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
      const raw = this.#plain(this.#at, end);
      this.#close(end, this.#nameAt, this.#nameEnd);
      return raw;
    }
    return this.#piecewise();
  }

  /** To the end of the element that was opened last, whatever is in it. */
  skip(): void {
    if (this.enter()) while (this.next()) this.skip();
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
        this.#close(at, this.#nameAt, this.#nameEnd);
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
    if (end - at > LONGEST_NAME) throw this.#wrong(`it has a name of more than ${LONGEST_NAME} characters`);
    this.#nameAt = at + 1;
    this.#localAt = colon === -1 ? at + 1 : colon + 1;
    this.#nameEnd = end;
    this.isEmpty = false;
    this.isNil = false;
    this.type = undefined;
    this.kind = undefined;
    if (text.charCodeAt(end) === GREATER) this.#at = end + 1;
    else if (!this.#asBefore(end)) this.#attributes(end);
  }

  /** Reads what is written like in a tag before, all but the value of the type. */
  #asBefore(from: number): boolean {
    const text = this.#text;
    for (const head of this.#heads) {
      if (head.from !== this.#xsi || !text.startsWith(head.text, from)) continue;
      const open = from + head.text.length;
      const close = text.indexOf('"', open);
      if (close === -1 || text.charCodeAt(close + 1) !== GREATER) return false;
      this.#xsi = head.to;
      this.type = this.#typeFrom(text.slice(open, close));
      this.#at = close + 2;
      return true;
    }
    return false;
  }

  #typeFrom(value: string): string {
    const known = this.#types.get(value);
    if (known !== undefined) return known;
    const type = withoutPrefix(value);
    this.#types.set(value, type);
    return type;
  }

  /** A piece of the text without markup in it. */
  #plain(from: number, to: number): string {
    const text = this.#text;
    if (this.#ampersand < from) this.#ampersand = found(text.indexOf('&', from));
    if (this.#return < from) this.#return = found(text.indexOf('\r', from));
    const raw = text.slice(from, to);
    return this.#ampersand < to || this.#return < to ? unescaped(raw) : raw;
  }

  #attributes(from: number): void {
    const text = this.#text;
    const scope = this.#xsi;
    let at = from;
    // Looked at in the end: a prefix may be declared after its use, in the same tag.
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
      else if (name.includes(':')) prefixed.push({ name, value, open: open + 1 });
    }
    this.#at = at + 1;
    for (const { name, value, open } of prefixed) {
      const colon = name.indexOf(':');
      if (!this.#xsi.has(name.slice(0, colon))) continue;
      const local = name.slice(colon + 1);
      if (local === 'type') {
        this.type = withoutPrefix(value);
        const isLast = open + value.length + 2 === this.#at && text[open - 1] === '"';
        if (isLast && open - from <= LONGEST_HEAD && prefixed.length === 1 && this.kind === undefined)
          this.#remember({ text: copied(text.slice(from, open)), from: scope, to: this.#xsi });
      } else if (local === 'nil') this.isNil = value === 'true' || value === '1';
    }
  }

  #remember(head: Head): void {
    if (this.#heads.unshift(head) > HEADS) this.#heads.pop();
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
    if (isXsi && this.#xsi.size >= MAX_XSI_PREFIXES)
      throw this.#wrong(
        `<${this.qualified}> declares more than ${MAX_XSI_PREFIXES} prefixes for one namespace`,
      );
    const to = new Set(this.#xsi);
    if (isXsi) to.add(prefix);
    else to.delete(prefix);
    this.#declared = { from: this.#xsi, prefix, to };
    this.#xsi = to;
  }

  /** @param start where the name begins that must be here, as it was when it was opened, and `end` where that ends */
  #close(at: number, start: number, end: number): void {
    const text = this.#text;
    let here = at + 2;
    for (let there = start; there < end && text.charCodeAt(here) === text.charCodeAt(there); there++) here++;
    const isSame = here - at - 2 === end - start;
    while (text.charCodeAt(here) <= 32) here++;
    if (!isSame || text.charCodeAt(here) !== GREATER) {
      const name = text.slice(start, end);
      throw this.#wrong(`<${name}> ends with ${JSON.stringify(text.slice(at, at + 40))}`);
    }
    this.#at = here + 1;
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

/** What was not found is behind everything. */
function found(at: number): number {
  return at === -1 ? Number.POSITIVE_INFINITY : at;
}

/** As a text of its own: what is only a part of another is slower to compare with. */
function copied(text: string): string {
  return Array.from(text).join('');
}
