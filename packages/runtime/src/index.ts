export { CertificateAuthority, type Issued } from './pki/certificate.ts';
