/** For tests of controllers on a real API server: `@vmwright/runtime/testing`. */
export { type RunningManager, startManager, type TestManagerOptions } from './manager.ts';
export { type WaitOptions, waitFor, waitForCondition, waitForGone } from './wait-for.ts';
