/** One sample of a metric. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

/**
 * Parses Prometheus' text format (0.0.4) strictly: each family is contiguous and appears once, HELP and TYPE precede
 * its samples, series are unique and histograms are consistent.
 * @throws Error at the first violation
 */
export function parseExposition(text: string): Map<string, ParsedFamily> {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line has no newline');
  const families = new Map<string, ParsedFamily>();
  const seen = new Set<string>();
  let help: { readonly name: string; readonly text: string } | undefined;
  let current: [string, ParsedFamily] | undefined;
  for (const line of text.split('\n').slice(0, -1)) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line);
    if (comment !== null) {
      const [, keyword, name = '', rest = ''] = comment;
      if (keyword === 'HELP') {
        help = { name, text: withoutEscapes(rest, /\\[\\n]/g) };
        continue;
      }
      if (help?.name !== name) throw new Error(`the # TYPE line of ${name} does not follow its # HELP line`);
      if (!['counter', 'gauge', 'histogram'].includes(rest))
        throw new Error(`${name} has the unknown type ${rest}`);
      if (families.has(name)) throw new Error(`duplicate family: ${name}`);
      current = [name, { type: rest, help: help.text, samples: [] }];
      families.set(...current);
      continue;
    }
    const sample = parseSample(line);
    if (current === undefined) throw new Error(`this sample precedes the first # TYPE line: ${line}`);
    const [name, { type, samples }] = current;
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
    if (!suffixes.some((suffix) => sample.name === name + suffix))
      throw new Error(`${sample.name} is not a sample of ${name}`);
    const key = sample.name + JSON.stringify(Object.entries(sample.labels).sort());
    if (seen.has(key)) throw new Error(`duplicate series: ${line}`);
    seen.add(key);
    if (type === 'counter' && !(sample.value >= 0)) throw new Error(`counter below 0: ${line}`);
    samples.push(sample);
  }
  for (const [name, family] of families) if (family.type === 'histogram') checkHistogram(name, family);
  return families;
}

/** Returns the value of one series; undefined if it does not exist. */
export function sampleOf(
  text: string,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const want = JSON.stringify(Object.entries(labels).sort());
  return [...parseExposition(text).values()]
    .flatMap(({ samples }) => samples)
    .find((each) => each.name === name && JSON.stringify(Object.entries(each.labels).sort()) === want)?.value;
}

function parseSample(line: string): Sample {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.+)\})? (\S+)$/.exec(line);
  if (match === null) throw new Error(`not a sample: ${line}`);
  const [, name = '', inBraces = '', value = ''] = match;
  const labels: Record<string, string> = {};
  let rest = inBraces;
  while (rest !== '') {
    const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(?:,(?=.)|$)/.exec(rest);
    if (label === null) throw new Error(`not labels: ${line}`);
    const [whole, key = '', text = ''] = label;
    if (key in labels) throw new Error(`duplicate label: ${line}`);
    labels[key] = withoutEscapes(text, /\\[\\n"]/g);
    rest = rest.slice(whole.length);
  }
  return { name, labels, value: numberIn(value) };
}

function numberIn(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  if (text === '-Inf') return Number.NEGATIVE_INFINITY;
  if (text === 'NaN') return Number.NaN;
  if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(text)) throw new Error(`not a number: ${text}`);
  return Number(text);
}

function withoutEscapes(text: string, sequences: RegExp): string {
  if (text.replaceAll(sequences, '').includes('\\')) throw new Error(`unescaped backslash: ${text}`);
  return text.replaceAll(sequences, (found) => (found === '\\n' ? '\n' : found.slice(1)));
}

function checkHistogram(name: string, { samples }: ParsedFamily): void {
  const series = Map.groupBy(samples, ({ labels: { le, ...rest } }) => JSON.stringify(rest));
  for (const [labels, all] of series) {
    const buckets = all.filter((each) => each.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le = '' } }) => numberIn(le));
    const rises = (values: readonly number[], strictly: boolean) =>
      values.every(
        (value, at) => at === 0 || value > (values[at - 1] ?? 0) || (!strictly && value === values[at - 1]),
      );
    if (!rises(bounds, true) || bounds.at(-1) !== Number.POSITIVE_INFINITY)
      throw new Error(`${name}${labels}: bounds must ascend to +Inf: ${bounds}`);
    if (
      !rises(
        buckets.map(({ value }) => value),
        false,
      )
    )
      throw new Error(`${name}${labels}: counts decrease`);
    const counts = all.filter((each) => each.name === `${name}_count`);
    const sums = all.filter((each) => each.name === `${name}_sum`);
    if (counts.length !== 1 || sums.length !== 1)
      throw new Error(`${name}${labels}: needs exactly one sum and one count`);
    if (counts[0]?.value !== buckets.at(-1)?.value)
      throw new Error(`${name}${labels}: count differs from the +Inf bucket`);
  }
}
