const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns a UUID in lower case; undefined if the text is not a UUID. */
export function normalizeUuid(text: string): string | undefined {
  const uuid = text.trim().toLowerCase();
  return UUID.test(uuid) ? uuid : undefined;
}

/**
 * Swaps the bytes of the first three fields of a UUID. SMBIOS stores these fields in little-endian order since version
 * 2.6, and in big-endian order before. So the guest reports a BIOS UUID with swapped bytes on some hardware versions.
 */
export function swapUuid(uuid: string): string {
  return uuid
    .split('-')
    .map((field, index) => (index < 3 ? (field.match(/../g) ?? []).reverse().join('') : field))
    .join('-');
}
