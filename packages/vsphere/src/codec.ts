/** The codec by itself, for who plays the other end: a model of vCenter reads requests with it. */
export { decode } from './xml/decode.ts';
export { Reader } from './xml/reader.ts';
export { escaped } from './xml/text.ts';
