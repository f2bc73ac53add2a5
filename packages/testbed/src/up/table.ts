export interface Row {
  readonly part: string;
  readonly version: string;
  readonly address: string;
  readonly use: string;
}

const HEAD: Row = { part: 'PART', version: 'VERSION', address: 'ADDRESS', use: 'HOW TO USE IT' };

/** Rows in aligned columns, the last one as long as it likes. */
export function table(rows: readonly Row[]): string {
  const all = [HEAD, ...rows];
  const width = (column: keyof Row) => Math.max(...all.map((row) => row[column].length)) + 3;
  const [part, version, address] = [width('part'), width('version'), width('address')];
  return all
    .map((row) => row.part.padEnd(part) + row.version.padEnd(version) + row.address.padEnd(address) + row.use)
    .join('\n');
}
