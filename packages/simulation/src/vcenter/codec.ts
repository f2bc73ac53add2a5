/** The client's own codec, used to decode its requests. */
export { decode, escaped, Reader } from '@vmwright/vsphere/codec';
