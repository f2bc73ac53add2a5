import type { Choices } from './choices.ts';

/** Faults that the network can inject into a request. */
export const REQUEST_FAULTS = [
  'lost', // never arrives; the client gets a connection error
  'half-open', // never arrives; the client gets neither a response nor an error
  'refused', // arrives; the server returns 500 without executing it
  'throttled', // arrives; the server returns 429 with Retry-After without executing it
  'reset', // arrives and is executed; the connection breaks before the response
  'answer lost', // arrives and is executed; the client gets neither a response nor an error
  'late', // arrives seconds later, possibly after the client timed out
] as const;

export type RequestFault = (typeof REQUEST_FAULTS)[number];

/** Faults that the network can inject into a stream, in addition to delays. */
export const STREAM_FAULTS = [
  'cut', // the connection breaks
  'stalled', // no more lines arrive; neither side gets an error
] as const;

export type StreamFault = (typeof STREAM_FAULTS)[number];

/** Fault rates on the connections to a server. A rate of n means one in n; 0 means never. */
export interface FaultRates {
  /** One request in n is hit by a fault. */
  readonly request: number;
  readonly requestFaults: readonly [RequestFault, ...RequestFault[]];
  /** One stream line in n is hit by a fault. */
  readonly line: number;
  readonly streamFaults: readonly [StreamFault, ...StreamFault[]];
}

export const USUAL_FAULTS: FaultRates = {
  request: 10,
  requestFaults: REQUEST_FAULTS,
  line: 40,
  streamFaults: STREAM_FAULTS,
};

export function requestFault(choices: Choices, rates: FaultRates): RequestFault | undefined {
  return choices.oneIn(rates.request) ? choices.one(rates.requestFaults) : undefined;
}

export function streamFault(choices: Choices, rates: FaultRates): StreamFault | undefined {
  return choices.oneIn(rates.line) ? choices.one(rates.streamFaults) : undefined;
}
