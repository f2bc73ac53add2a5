/** Helpers for thrown values: `@vmwright/core/errors`. Does not load the HTTP code, for programs that must start fast. */
export { messageOf } from './message-of.ts';
export { systemCode } from './system-code.ts';
