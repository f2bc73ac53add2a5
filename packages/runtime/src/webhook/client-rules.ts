import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { RequestError } from '../server/http-response.ts';

/** Client certificates that are accepted. */
export interface ClientRules {
  /** CAs of the client certificates in PEM. */
  readonly ca: string;
  /** Accepted common names. @default every certificate of these CAs is accepted */
  readonly names?: readonly string[] | undefined;
}

/**
 * Checks the client certificate of a connection, if rules are given.
 * @throws RequestError 401 without a valid certificate, 403 if its name is not accepted
 */
export function assertClient(socket: Socket, rules: ClientRules | undefined): void {
  if (rules === undefined) return;
  if (!(socket instanceof TLSSocket) || !socket.authorized)
    throw new RequestError(401, 'a client certificate of an accepted CA is required\n');
  const { names } = rules;
  if (names === undefined) return;
  // For a subject with several common names, Node returns an array, contrary to its type. Such certificates are
  // rejected.
  const commonName: unknown = socket.getPeerCertificate().subject?.CN;
  if (typeof commonName !== 'string' || !names.includes(commonName))
    throw new RequestError(403, 'the name in the client certificate is not accepted\n');
}
