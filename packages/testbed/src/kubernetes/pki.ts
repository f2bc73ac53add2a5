import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CertificateAuthority } from '@vmwright/runtime/testing';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Certificate authorities and certificates of one control plane, created when it starts. */
export class Pki {
  readonly ca = authority('vmwright-testbed');
  readonly #frontProxyCa = authority('vmwright-testbed-front-proxy');
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Writes the certificate and key files of kube-apiserver and kube-controller-manager, and returns their paths. */
  async writeFiles() {
    const serviceAccount = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    const server = this.server('kube-apiserver', [
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      '10.96.0.1',
    ]);
    const frontProxy = this.#frontProxyCa.issue({
      ...validity(),
      subject: { commonName: 'front-proxy' },
      usage: ['client'],
    });
    return {
      ca: await this.#write('ca.crt', this.ca.certificate),
      caKey: await this.#write('ca.key', this.ca.key),
      server: await this.#write('apiserver.crt', server.certificate),
      serverKey: await this.#write('apiserver.key', server.key),
      frontProxyCa: await this.#write('front-proxy-ca.crt', this.#frontProxyCa.certificate),
      frontProxy: await this.#write('front-proxy.crt', frontProxy.certificate),
      frontProxyKey: await this.#write('front-proxy.key', frontProxy.key),
      serviceAccountKey: await this.#write('sa.key', serviceAccount.privateKey),
      serviceAccountPublicKey: await this.#write('sa.pub', serviceAccount.publicKey),
    };
  }

  client(commonName: string, ...organizations: readonly string[]) {
    return this.ca.issue({ ...validity(), subject: { commonName, organizations }, usage: ['client'] });
  }

  /** Issues a certificate for a server with these names, localhost and 127.0.0.1. */
  server(commonName: string, names: readonly string[]) {
    const all = [...names, 'localhost', '127.0.0.1'];
    return this.ca.issue({ ...validity(), subject: { commonName }, usage: ['server', 'client'], names: all });
  }

  async #write(name: string, pem: string): Promise<string> {
    const path = join(this.#dir, name);
    await writeFile(path, pem, { mode: 0o600 });
    return path;
  }
}

function authority(commonName: string): CertificateAuthority {
  return CertificateAuthority.create({ commonName }, validity());
}

/**
 * Returns a validity period. It began one hour ago, to tolerate clock skew. It ends in one year, because `make up` may
 * run for months.
 */
function validity() {
  const now = Date.now();
  return { notBefore: new Date(now - DAY_MS / 24), notAfter: new Date(now + 365 * DAY_MS) };
}
