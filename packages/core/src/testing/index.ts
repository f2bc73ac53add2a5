/** Helpers for tests: `@vmwright/core/testing`. */
export { type ParsedFamily, parseExposition, type Sample, sampleOf } from './exposition.ts';
export { type ResponseContent, responseOf } from './response.ts';
export { listen, writeEndlessly } from './servers.ts';
export { VirtualClock } from './virtual-clock.ts';
