import { request } from 'node:https';
import type { Vcsim } from '@vmwright/testbed';
import type { VcenterClient } from '@vmwright/vsphere';

type Managed = 'VirtualMachine' | 'Folder';

const NAMESPACES = 'xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns="urn:vim25"';

interface SoapResponse {
  readonly cookie: string;
  readonly text: string;
}

/** Simulates a person who works in vCenter, with calls that the operator's client lacks. */
export class VcenterUser {
  readonly #vcsim: Vcsim;
  readonly #tasks: VcenterClient['tasks'];
  #cookie = '';

  /** @param vcenter client that waits for the tasks that the calls start */
  constructor(vcsim: Vcsim, { tasks }: Pick<VcenterClient, 'tasks'>) {
    this.#vcsim = vcsim;
    this.#tasks = tasks;
  }

  /** Moves a machine into a folder. Resolves when the machine is there. */
  async move(vm: string, folder: string): Promise<void> {
    await this.#follow('MoveIntoFolder_Task', 'Folder', folder, `<list type="VirtualMachine">${vm}</list>`);
  }

  /** Renames a machine or a folder. Resolves when it has the name. */
  async rename(type: Managed, id: string, name: string): Promise<void> {
    await this.#follow('Rename_Task', type, id, `<newName>${name}</newName>`);
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

  /** Starts a task and waits until it has succeeded. */
  async #follow(method: string, type: string, id: string, args: string): Promise<void> {
    const response = await this.#call(method, type, id, args);
    const value = />(task-\d+)</.exec(response)?.[1];
    if (value === undefined) throw new Error(`${method} returned no task: ${response}`);
    await this.#tasks.follow({ type: 'Task', value });
  }

  /** @returns the response */
  async #call(method: string, type: string, id: string, args = ''): Promise<string> {
    await this.#logIn(); // logs in for each call, because tests expire all sessions
    return (await this.#send(`<${method}><_this type="${type}">${id}</_this>${args}</${method}>`)).text;
  }

  async #logIn(): Promise<void> {
    const { username, password } = this.#vcsim;
    this.#cookie = '';
    const user = `<userName>${username}</userName><password>${password}</password>`;
    const { cookie } = await this.#send(
      `<Login><_this type="SessionManager">SessionManager</_this>${user}</Login>`,
    );
    this.#cookie = cookie;
  }

  /** Sends a SOAP request. @returns the response, with the cookie that it sets */
  #send(call: string): Promise<SoapResponse> {
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
          else resolve({ cookie: response.headers['set-cookie']?.[0]?.split(';')[0] ?? '', text });
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }
}
