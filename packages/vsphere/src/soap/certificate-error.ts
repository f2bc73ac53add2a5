/** Error codes of Node's TLS for a certificate that it does not accept. */
const CODES =
  /^(CERT_|CRL_|ERR_TLS_CERT|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED|UNABLE_TO_(GET|VERIFY|DECRYPT|DECODE)|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE))/;

/** Whether a connection failed because the server's certificate is not trusted. */
export function isCertificateError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && typeof error.code === 'string' && CODES.test(error.code)) return true;
  return isCertificateError(error.cause);
}
