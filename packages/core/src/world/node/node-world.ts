import { randomUUID } from 'node:crypto';
import type { World } from '../world.ts';
import { connect } from './transport.ts';

/** setTimeout takes a longer delay for none at all. */
const LONGEST_MS = 2 ** 31 - 1;

/** The real world: this machine's clocks, timers, chance and network. */
export const nodeWorld: World = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), LONGEST_MS));
    return { cancel: () => clearTimeout(timer) };
  },
  random: () => Math.random(),
  uuid: () => randomUUID(),
  connect: (server) => connect(server, { env: process.env }),
  pinsCertificates: true,
};
