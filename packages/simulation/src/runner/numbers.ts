/** Formats an integer with thousands separators: 1,234,567. */
export function grouped(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Formats a duration: 0.4 s, 3 min 20 s, 5 h 12 min, 3 d 4 h. */
export function duration(ms: number): string {
  const seconds = Math.max(ms, 0) / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const units = [
    [86_400, 'd', 'h', 3_600],
    [3_600, 'h', 'min', 60],
    [60, 'min', 's', 1],
  ] as const;
  for (const [size, unit, lesser, lesserSize] of units)
    if (seconds >= size) {
      const rest = Math.floor((seconds % size) / lesserSize);
      const whole = `${grouped(Math.floor(seconds / size))} ${unit}`;
      return rest === 0 ? whole : `${whole} ${rest} ${lesser}`;
    }
  return `${Math.floor(seconds)} s`;
}
