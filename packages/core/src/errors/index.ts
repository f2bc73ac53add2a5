/** Helpers for thrown values, without the network: `@vmwright/core/errors`, for programs that must start fast. */
export { messageOf } from './message-of.ts';
export { systemCode } from './system-code.ts';
