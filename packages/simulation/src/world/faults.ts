import type { Choices } from './choices.ts';

/** What may happen to a request. */
export const REQUEST_FAULTS = [
  'lost', // never arrives; the client sees a broken connection
  'half-open', // never arrives, and the client hears nothing
  'refused', // arrives; 500, and nothing was done
  'throttled', // arrives; 429 with Retry-After, and nothing was done
  'reset', // carried out, and the connection breaks before the answer
  'answer lost', // carried out, and the client hears nothing
  'late', // arrives seconds later, perhaps when the client has long given up
] as const;

export type RequestFault = (typeof REQUEST_FAULTS)[number];

/** What may happen to a stream, beside coming late. */
export const STREAM_FAULTS = [
  'cut', // breaks
  'stalled', // falls silent, and nobody is told
] as const;

export type StreamFault = (typeof STREAM_FAULTS)[number];

/** How often things go wrong on the way to a server. 0 is never. */
export interface FaultRates {
  /** One request in so many. */
  readonly request: number;
  readonly requestFaults: readonly [RequestFault, ...RequestFault[]];
  /** One line of a stream in so many. */
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
