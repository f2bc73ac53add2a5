/** What the client writes requests with, to read them. */
export { decode, escaped, Reader } from '@vmwright/vsphere/codec';
