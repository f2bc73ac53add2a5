/**
 * Helpers for thrown values: `@vmwright/core/errors`. Programs that must start fast import this entry point, because it
 * does not load the HTTP code.
 */
export { messageOf } from './message-of.ts';
export { systemCode } from './system-code.ts';
