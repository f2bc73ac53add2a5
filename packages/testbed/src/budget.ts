/** Returns the number of rounds of a test: `usual` in `make test`, `soak` in `make soak`, which sets SOAK. */
export function budget(usual: number, soak: number): number {
  return process.env.SOAK === undefined ? usual : soak;
}
