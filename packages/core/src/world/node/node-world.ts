import { randomUUID } from 'node:crypto';
import type { World } from '../world.ts';
import { connect } from './transport.ts';

/** Longest delay that setTimeout supports; longer delays are reduced to it, because they would fire immediately. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** World of the Node.js process: its clocks, timers, randomness and network. */
export const nodeWorld: World = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), MAX_DELAY_MS));
    return { cancel: () => clearTimeout(timer) };
  },
  random: () => Math.random(),
  uuid: () => randomUUID(),
  connect: (server) => connect(server, { env: process.env }),
  pinsCertificates: true,
};
