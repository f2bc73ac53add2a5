import { InvalidRequestError, UnreadableAnswerError } from '../errors.ts';

/** A Map and not an object: vCenter chooses the name that is looked up, and an object also has `toString`. */
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
]);
const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  // Written as they are they would be read as spaces, or as one line end.
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};
// Half a surrogate pair is no character either.
const UNSENDABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what this looks for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/**
 * A text as XML has it, in an element or in an attribute.
 * @param path for the error, which must not show the text: it may be a password
 */
export function escaped(text: string, path: string): string {
  const [wrong] = UNSENDABLE.exec(text) ?? [];
  if (wrong !== undefined) {
    const code = wrong.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
    throw new InvalidRequestError(`${path} has the character U+${code}, which cannot be sent as XML`);
  }
  return /[&<>"\t\n\r]/.test(text) ? text.replace(/[&<>"\t\n\r]/g, (each) => ESCAPES[each] ?? each) : text;
}

/** What an escaped text says. */
export function unescaped(raw: string): string {
  const lines = raw.includes('\r') ? raw.replace(/\r\n?/g, '\n') : raw;
  if (!lines.includes('&')) return lines;
  return lines.replace(/&([^;&\s]{0,10})(;?)/g, (whole, name: string, end: string) => {
    const text = end === '' ? undefined : (ENTITIES.get(name) ?? characterFrom(name));
    if (text === undefined)
      throw new UnreadableAnswerError(`the answer has ${whole}, which XML does not know`);
    return text;
  });
}

/** From `#10` or `#xA`. */
function characterFrom(name: string): string | undefined {
  const [, hex, decimal] = /^#(?:x([0-9a-fA-F]+)|(\d+))$/.exec(name) ?? [];
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
}
