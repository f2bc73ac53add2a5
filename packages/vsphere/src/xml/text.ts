import { InvalidRequestError, InvalidResponseError } from '../errors.ts';

/** A Map, because the looked-up name comes from the server and an object would also have `toString`. */
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
  // A parser would replace these characters by spaces or line feeds if they were not escaped.
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};
// Characters that XML does not allow, and unpaired surrogates.
const INVALID_XML =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters on purpose
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/**
 * Escapes a text for an element or attribute.
 * @param path name of the value in the error; the error does not contain the text, which may be a password
 * @throws InvalidRequestError
 */
export function escaped(text: string, path: string): string {
  const [wrong] = INVALID_XML.exec(text) ?? [];
  if (wrong !== undefined) {
    const code = wrong.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
    throw new InvalidRequestError(`${path} contains the character U+${code}, which XML does not allow`);
  }
  return /[&<>"\t\n\r]/.test(text) ? text.replace(/[&<>"\t\n\r]/g, (each) => ESCAPES[each] ?? each) : text;
}

/** Decodes an escaped text. @throws InvalidResponseError */
export function unescaped(raw: string): string {
  const lines = raw.includes('\r') ? raw.replace(/\r\n?/g, '\n') : raw;
  if (!lines.includes('&')) return lines;
  return lines.replace(/&([^;&\s]{0,10})(;?)/g, (whole, name: string, end: string) => {
    const text = end === '' ? undefined : (ENTITIES.get(name) ?? characterFrom(name));
    if (text === undefined)
      throw new InvalidResponseError(`the response contains the unknown XML entity ${whole}`);
    return text;
  });
}

/** Decodes `#10` or `#xA`. */
function characterFrom(name: string): string | undefined {
  const [, hex, decimal] = /^#(?:x([0-9a-fA-F]+)|(\d+))$/.exec(name) ?? [];
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
}
