/** Codec of the vSphere client. The model uses it to decode the client's requests. */
export { decode, escaped, Reader } from '@vmwright/vsphere/codec';
