import { request } from 'node:https';
import type { Vcsim } from '@vmwright/testbed';

type Managed = 'VirtualMachine' | 'Folder';

const NAMESPACES = 'xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns="urn:vim25"';

/**
 * Simulates a person who works in vCenter, with calls that the operator's client lacks. Does not wait for tasks: in
 * vcsim, they end before the call returns or soon after.
 */
export class VcenterUser {
  readonly #vcsim: Vcsim;
  #cookie = '';

  constructor(vcsim: Vcsim) {
    this.#vcsim = vcsim;
  }

  /** Moves a machine into a folder. */
  async move(vm: string, folder: string): Promise<void> {
    await this.#call('MoveIntoFolder_Task', 'Folder', folder, `<list type="VirtualMachine">${vm}</list>`);
  }

  async rename(type: Managed, id: string, name: string): Promise<void> {
    await this.#call('Rename_Task', type, id, `<newName>${name}</newName>`);
  }

  /** Turns a machine, which must be off, into a template. */
  async markAsTemplate(vm: string): Promise<void> {
    await this.#call('MarkAsTemplate', 'VirtualMachine', vm);
  }

  async markAsMachine(vm: string, pool: string): Promise<void> {
    await this.#call(
      'MarkAsVirtualMachine',
      'VirtualMachine',
      vm,
      `<pool type="ResourcePool">${pool}</pool>`,
    );
  }

  async #call(method: string, type: string, id: string, args = ''): Promise<void> {
    await this.#logIn(); // logs in for each call, because tests expire all sessions
    await this.#send(`<${method}><_this type="${type}">${id}</_this>${args}</${method}>`);
  }

  async #logIn(): Promise<void> {
    const { username, password } = this.#vcsim;
    this.#cookie = '';
    const user = `<userName>${username}</userName><password>${password}</password>`;
    this.#cookie = await this.#send(
      `<Login><_this type="SessionManager">SessionManager</_this>${user}</Login>`,
    );
  }

  /** Sends a SOAP request. @returns the cookie that the response sets */
  #send(call: string): Promise<string> {
    const { url, ca } = this.#vcsim;
    const body = `<e:Envelope ${NAMESPACES}><e:Body>${call}</e:Body></e:Envelope>`;
    const headers = { 'content-type': 'text/xml', ...(this.#cookie && { cookie: this.#cookie }) };
    return new Promise((resolve, reject) => {
      const sent = request(url, { method: 'POST', ca, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          if (response.statusCode !== 200) reject(new Error(`${call}: ${response.statusCode} ${text}`));
          else resolve(response.headers['set-cookie']?.[0]?.split(';')[0] ?? '');
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }
}
