/*
 * Address formats as the API server validates them. For `ipv4` and `cidr`, the API server uses the parser of an older
 * Go version. That parser accepts leading zeros (010.0.0.1) and groups of more than four digits. The parser for `ipv6`
 * rejects both.
 */

interface ParseOptions {
  /** Accepts leading zeros. */
  readonly lenient: boolean;
}

/**
 * Returns whether a string is an IPv4 address. Like the API server, accepts `::ffff:1.2.3.4`, because it contains a
 * dot.
 */
export function isIpv4(value: string): boolean {
  return value.includes('.') && isAddress(value, { lenient: true });
}

export function isIpv6(value: string): boolean {
  return value.includes(':') && isAddress(value, { lenient: false });
}

/** Returns whether a string is an address with a prefix length. Host bits may be set. */
export function isCidr(value: string): boolean {
  const cut = value.indexOf('/');
  const [address, length] = [value.slice(0, cut), value.slice(cut + 1)];
  if (cut === -1 || !/^\d+$/.test(length)) return false;
  if (isDottedQuad(address, { lenient: true })) return Number(length) <= 32;
  return isColonSeparated(address, { lenient: true }) && Number(length) <= 128;
}

/**
 * Returns whether a string is a MAC address of 6, 8 or 20 bytes: `00:50:56:01:02:03`, `00-50-56-01-02-03`,
 * `0050.5601.0203`. Rejects an address without separators: whether an API server accepts it depends on its Go version.
 */
export function isMac(value: string): boolean {
  const separator = /[:.-]/.exec(value)?.[0];
  if (separator === undefined) return false;
  const groups = value.split(separator);
  const width = separator === '.' ? 4 : 2;
  const digits = groups.join('');
  return (
    groups.every((group) => group.length === width) &&
    /^[0-9a-f]+$/i.test(digits) &&
    [12, 16, 40].includes(digits.length)
  );
}

function isAddress(value: string, style: ParseOptions): boolean {
  const first = /[.:]/.exec(value)?.[0];
  return first === '.' ? isDottedQuad(value, style) : first === ':' && isColonSeparated(value, style);
}

function isDottedQuad(value: string, { lenient }: ParseOptions): boolean {
  const parts = value.split('.');
  return (
    parts.length === 4 &&
    parts.every((part) => /^\d+$/.test(part) && Number(part) <= 255 && (lenient || !/^0\d/.test(part)))
  );
}

function isColonSeparated(value: string, style: ParseOptions): boolean {
  const halves = value.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  const tail = groups.at(-1);
  const dotted = tail?.includes('.') ?? false;
  // A dotted IPv4 part (`::ffff:1.2.3.4`) must be at the very end, not before a trailing `::`.
  if (dotted && (value.endsWith('::') || !isDottedQuad(tail ?? '', style))) return false;
  const plain = dotted ? groups.slice(0, -1) : groups;
  if (!plain.every((group) => isHexGroup(group, style))) return false;
  const length = plain.length + (dotted ? 2 : 0);
  return halves.length === 2 ? length < 8 : length === 8;
}

function isHexGroup(group: string, { lenient }: ParseOptions): boolean {
  return /^[0-9a-f]+$/i.test(group) && (lenient ? Number.parseInt(group, 16) <= 0xffff : group.length <= 4);
}
