import { randomUUID } from 'node:crypto';
import type { World } from '../world.ts';
import { connect } from './transport.ts';

/** Longest delay that setTimeout supports, about 25 days. With a longer delay, the timer would fire immediately. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** World of the Node.js process: its clocks, timers, randomness and network. */
export const nodeWorld: World = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    let timer: NodeJS.Timeout;
    const start = (leftMs: number) => {
      timer =
        leftMs > MAX_DELAY_MS
          ? setTimeout(() => start(leftMs - MAX_DELAY_MS), MAX_DELAY_MS)
          : setTimeout(callback, Math.max(leftMs, 0));
    };
    start(ms);
    return { cancel: () => clearTimeout(timer) };
  },
  random: () => Math.random(),
  uuid: () => randomUUID(),
  connect: (server) => connect(server, { env: process.env }),
  pinsCertificates: true,
};
