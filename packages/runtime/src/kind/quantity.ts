const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/**
 * Returns the value of a Kubernetes quantity such as `500m`, `16Gi` or `1e3`, in its base unit (cores, bytes). Exact up
 * to 2^53; larger values are rounded.
 * @returns undefined if the text is not a quantity
 */
export function parseQuantity(text: string | number): number | undefined {
  const [, value, suffix = '', exponent] =
    /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))([KMGTPE]i|[numkMGTPE])?(?:[eE]([+-]?\d+))?$/.exec(String(text)) ?? [];
  const factor = SUFFIXES[suffix];
  if (value === undefined || factor === undefined) return undefined;
  if (exponent === undefined) return Number(value) * factor;
  return suffix === '' ? Number(`${value}e${exponent}`) : undefined;
}
