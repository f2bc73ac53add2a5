import type { Judged } from './bar.ts';

const WIDTH = 960;
const LABELS = 420;
const BAR = 9;
const STEP = 30;
const COLOURS = { ours: '#3178c6', theirs: '#8fa3ad', missed: '#c0392b' };

/**
 * Draws two bars per row, ours and theirs, scaled per row, and their ratio. The ratio is red if it misses its limit.
 */
export function plot(title: string, rows: readonly Judged[]): string {
  const compared = rows.filter(({ theirs }) => theirs !== null);
  const height = 60 + STEP * compared.length;
  const drawn = compared.map((row, i) => pair(row, 50 + i * STEP)).join('\n');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="8" y="18">${xml(title)}</text>
<text x="8" y="36"><tspan fill="${COLOURS.ours}">■</tspan> ours <tspan fill="${COLOURS.theirs}">■</tspan> theirs</text>
${drawn}
</svg>
`;
}

function pair({ name, ours, theirs, ratio, holds }: Judged, y: number): string {
  const longest = Math.max(ours, theirs ?? 0);
  const bar = (value: number, at: number, colour: string) =>
    `<rect x="${LABELS}" y="${at}" width="${((value / longest) * (WIDTH - LABELS - 80)).toFixed(1)}" height="${BAR}" fill="${colour}"/>`;
  const colour = holds === false ? COLOURS.missed : 'black';
  return `<text x="8" y="${y + 13}">${xml(name)}</text>
${bar(ours, y, COLOURS.ours)}
${bar(theirs ?? 0, y + BAR + 1, COLOURS.theirs)}
<text x="${WIDTH - 70}" y="${y + 13}" fill="${colour}">${ratio?.toFixed(2)} ×</text>`;
}

function xml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
