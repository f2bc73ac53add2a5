/** Formats rows of cells as columns, separated by three spaces. */
export function table(rows: readonly (readonly string[])[], indent = ''): string {
  const widths = rows.reduce<readonly number[]>(
    (widest, row) =>
      Array.from({ length: Math.max(widest.length, row.length) }, (_, column) =>
        Math.max(row[column]?.length ?? 0, widest[column] ?? 0),
      ),
    [],
  );
  const line = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ');
  return rows.map((row) => `${indent}${line(row)}`.trimEnd()).join('\n');
}
