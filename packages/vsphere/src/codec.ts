/** The XML codec alone, for a simulated vCenter that reads requests. */
export { decode } from './xml/decode.ts';
export { Reader } from './xml/reader.ts';
export { escaped } from './xml/text.ts';
