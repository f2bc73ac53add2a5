import { createHash } from 'node:crypto';

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** How simulated machines behave. */
export interface SimulatedSettings {
  readonly seed: number;
  /** From create to running. */
  readonly bootMs: Range;
  /** From delete to gone. */
  readonly stopMs: Range;
  /** Of a boot; 0 to 1. */
  readonly failureProbability: number;
  /** A wave between two percentages; the same two for a constant. */
  readonly cpu: Range & {
    readonly periodMs: number;
    /** Percent up or down, changing every second. */
    readonly noise: number;
  };
}

/*
 * All of a simulated machine is a function of the seed, its id and the time. So a restart changes nothing, and there is
 * nothing to store.
 */

export function bootMs({ seed, bootMs }: SimulatedSettings, id: string): number {
  return between(bootMs, share(seed, id, 'boot'));
}

export function stopMs({ seed, stopMs }: SimulatedSettings, id: string): number {
  return between(stopMs, share(seed, id, 'stop'));
}

export function fails({ seed, failureProbability }: SimulatedSettings, id: string): boolean {
  return share(seed, id, 'failure') < failureProbability;
}

/** Whole percent at a moment. */
export function cpuAt({ seed, cpu }: SimulatedSettings, id: string, now: number): number {
  const phase = share(seed, id, 'phase');
  const wave = (1 - Math.cos(2 * Math.PI * (now / cpu.periodMs + phase))) / 2;
  const noise =
    cpu.noise === 0 ? 0 : (2 * share(seed, id, `noise ${Math.floor(now / 1000)}`) - 1) * cpu.noise;
  return Math.round(Math.min(Math.max(between(cpu, wave) + noise, 0), 100));
}

function between({ min, max }: Range, at: number): number {
  return min + (max - min) * at;
}

/** From 0 up to, but not including, 1; always the same for the same. */
function share(seed: number, id: string, what: string): number {
  return createHash('sha1').update(`${seed}\0${id}\0${what}`).digest().readUInt32BE() / 2 ** 32;
}
