export interface Row {
  readonly part: string;
  readonly version: string;
  readonly address: string;
  readonly use: string;
}

const HEADER: Row = { part: 'PART', version: 'VERSION', address: 'ADDRESS', use: 'USAGE' };

/** Formats rows as aligned columns; the last column is not padded. */
export function table(rows: readonly Row[]): string {
  const all = [HEADER, ...rows];
  const width = (column: keyof Row) => Math.max(...all.map((row) => row[column].length)) + 3;
  const [part, version, address] = [width('part'), width('version'), width('address')];
  return all
    .map((row) => row.part.padEnd(part) + row.version.padEnd(version) + row.address.padEnd(address) + row.use)
    .join('\n');
}
