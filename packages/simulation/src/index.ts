/** The deterministic simulation: the same controllers in a world with a virtual clock and a seed. Never shipped. */
export {};
