/** Helpers for tests of controllers against a real API server: `@vmwright/runtime/testing`. */
export { CertificateAuthority, type Issued } from '../pki/certificate.ts';
export type { LeafOptions, Subject, Validity } from '../pki/inputs.ts';
export { type RunningManager, startManager, type TestManagerOptions } from './manager.ts';
export { type WaitOptions, waitFor, waitForCondition, waitForGone } from './wait-for.ts';
