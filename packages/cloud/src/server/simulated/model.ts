import { createHash } from 'node:crypto';

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** Behaviour of simulated machines. */
export interface SimulatedSettings {
  readonly seed: number;
  /** Time from create to running. */
  readonly bootMs: Range;
  /** Time from delete until the machine is removed. */
  readonly stopMs: Range;
  /** Probability that a boot fails, 0 to 1. */
  readonly failureProbability: number;
  /** CPU utilization: a wave between `min` and `max` percent, constant if they are equal. */
  readonly cpu: Range & {
    readonly periodMs: number;
    /** Maximum deviation from the wave in percentage points. The deviation is random and changes every second. */
    readonly noise: number;
  };
}

/*
 * The state of a simulated machine is a pure function of the seed, the machine's id, the times of its create and delete
 * requests, and the current time. Therefore the driver stores nothing, and a restart of the cloud does not change the
 * state.
 */

export function bootMs({ seed, bootMs }: SimulatedSettings, id: string): number {
  return between(bootMs, hashed(seed, id, 'boot'));
}

export function stopMs({ seed, stopMs }: SimulatedSettings, id: string): number {
  return between(stopMs, hashed(seed, id, 'stop'));
}

export function fails({ seed, failureProbability }: SimulatedSettings, id: string): boolean {
  return hashed(seed, id, 'failure') < failureProbability;
}

/** Returns the CPU utilization at a time, as an integer percentage. */
export function cpuAt({ seed, cpu }: SimulatedSettings, id: string, now: number): number {
  const phase = hashed(seed, id, 'phase');
  const wave = (1 - Math.cos(2 * Math.PI * (now / cpu.periodMs + phase))) / 2;
  const noise =
    cpu.noise === 0 ? 0 : (2 * hashed(seed, id, `noise ${Math.floor(now / 1000)}`) - 1) * cpu.noise;
  return Math.round(Math.min(Math.max(between(cpu, wave) + noise, 0), 100));
}

function between({ min, max }: Range, fraction: number): number {
  return min + (max - min) * fraction;
}

/** Returns a pseudo-random number in [0, 1) that depends only on the arguments. */
function hashed(seed: number, id: string, what: string): number {
  return createHash('sha1').update(`${seed}\0${id}\0${what}`).digest().readUInt32BE() / 2 ** 32;
}
