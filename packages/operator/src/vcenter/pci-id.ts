/** `domain:bus:slot.function` in hexadecimal; ESXi releases before 6 leave the domain out. */
const HEXADECIMAL = /^(?:([0-9a-f]{1,4}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-9a-f])$/i;
/** The notation of .vmx files, in decimal: `00000:059:00.0`. */
const DECIMAL = /^(\d{5}):(\d{3}):(\d{2})\.(\d)$/;

/** Returns a PCI id as `0000:3b:00.0`. vCenter reports the same device in several notations. */
export function normalizePciId(id: string): string {
  const decimal = DECIMAL.exec(id);
  const [, domain = '0', bus = '', slot = '', fn = ''] = decimal ?? HEXADECIMAL.exec(id) ?? [];
  if (bus === '') return id.toLowerCase();
  const digits = (text: string, length: number) =>
    Number.parseInt(text, decimal === null ? 16 : 10)
      .toString(16)
      .padStart(length, '0');
  return `${digits(domain, 4)}:${digits(bus, 2)}:${digits(slot, 2)}.${digits(fn, 1)}`;
}

/** Returns the value of a PCI class, vendor or device id, which vCenter sends as a signed 16-bit number. */
export function unsigned(id: number): number {
  return id & 0xffff;
}
