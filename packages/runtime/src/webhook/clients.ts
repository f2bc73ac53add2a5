import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { RequestError } from '../server/http-response.ts';

/** Which client certificates are accepted. */
export interface ClientRules {
  /** PEM of the authorities that issue them. */
  readonly ca: string;
  /** Common names that are accepted. @default all that these authorities issue */
  readonly names?: readonly string[] | undefined;
}

/**
 * Checks the certificate that a client has shown, if rules are given.
 * @throws RequestError 401 without a valid certificate, 403 for another name
 */
export function assertClient(socket: Socket, rules: ClientRules | undefined): void {
  if (rules === undefined) return;
  if (!(socket instanceof TLSSocket) || !socket.authorized)
    throw new RequestError(401, 'a client certificate of an accepted authority is required\n');
  const { names } = rules;
  if (names === undefined) return;
  // Node gives an array for a subject with several common names, against its type: which of them counts is unclear.
  const commonName: unknown = socket.getPeerCertificate().subject?.CN;
  if (typeof commonName !== 'string' || !names.includes(commonName))
    throw new RequestError(403, 'the name in the client certificate is not accepted\n');
}
