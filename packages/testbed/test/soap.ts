import { Pool } from 'undici';

/** A managed object reference. */
export interface Ref {
  readonly type: string;
  readonly value: string;
}

export interface SoapResponse {
  readonly status: number;
  readonly text: string;
}

export const serviceInstance: Ref = { type: 'ServiceInstance', value: 'ServiceInstance' };
export const sessionManager: Ref = { type: 'SessionManager', value: 'SessionManager' };
const propertyCollector: Ref = { type: 'PropertyCollector', value: 'propertyCollector' };

/**
 * Minimal vSphere client for tests of the simulator. It shares no code with the project's client, so that a bug of that
 * client cannot hide a bug of the simulator.
 */
export class SoapClient implements AsyncDisposable {
  readonly #pool: Pool;
  #cookie = '';

  constructor({ url, ca }: { readonly url: string; readonly ca: string }) {
    this.#pool = new Pool(new URL(url).origin, { connect: { ca }, headersTimeout: 60_000 });
  }

  async call(method: string, object: Ref, args = ''): Promise<SoapResponse> {
    const { statusCode, headers, body } = await this.#pool.request({
      method: 'POST',
      path: '/sdk',
      headers: { 'content-type': 'text/xml', soapaction: 'urn:vim25/8.0.0.0', cookie: this.#cookie },
      body:
        '<?xml version="1.0" encoding="UTF-8"?>' +
        '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" ' +
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">' +
        `<s:Body><${method} xmlns="urn:vim25">${xml('_this', object)}${args}</${method}></s:Body></s:Envelope>`,
    });
    const [cookie] = [headers['set-cookie']].flat();
    if (cookie !== undefined) this.#cookie = cookie.split(';')[0] ?? '';
    return { status: statusCode, text: await body.text() };
  }

  login(username: string, password: string): Promise<SoapResponse> {
    const args = `<userName>${username}</userName><password>${password}</password>`;
    return this.call('Login', sessionManager, args);
  }

  /** Calls a method that returns a reference, such as a task. If the call fails, the error names the fault. */
  async start(method: string, object: Ref, args = ''): Promise<Ref> {
    const response = await this.call(method, object, args);
    const [, type, value] = /<returnval[^>]* type="(\w+)"[^>]*>([^<]+)</.exec(response.text) ?? [];
    if (type === undefined || value === undefined)
      throw new Error(`${method}: ${faultOf(response) ?? response.text}`);
    return { type, value };
  }

  /** Returns the XML of a property, or undefined if it is not set. */
  async property(object: Ref, path: string): Promise<string | undefined> {
    const text = await this.#retrieve(specOf([object], path));
    return /<val\b[^>]*>(.*?)<\/val>/s.exec(text)?.[1];
  }

  /** Returns the inventory object with this name, or undefined. */
  async find(type: string, name: string): Promise<Ref | undefined> {
    const view = await this.start(
      'CreateContainerView',
      { type: 'ViewManager', value: 'ViewManager' },
      `${xml('container', { type: 'Folder', value: 'group-d1' })}<type>${type}</type><recursive>true</recursive>`,
    );
    const select =
      '<selectSet xsi:type="TraversalSpec"><type>ContainerView</type><path>view</path><skip>false</skip></selectSet>';
    const text = await this.#retrieve(
      `<propSet><type>${type}</type><pathSet>name</pathSet></propSet>` +
        `<objectSet>${xml('obj', view)}<skip>true</skip>${select}</objectSet>`,
    );
    for (const [, value, objectName] of text.matchAll(
      /<obj type="\w+">([^<]+)<\/obj>.*?<val[^>]*>([^<]*)<\/val>/gs,
    )) {
      if (objectName === name && value !== undefined) return { type, value };
    }
    return undefined;
  }

  /** Creates a property collector that watches one property of the objects. */
  async watch(objects: readonly Ref[], path: string): Promise<Ref> {
    const collector = await this.start('CreatePropertyCollector', propertyCollector);
    const args = `<spec>${specOf(objects, path)}</spec><partialUpdates>false</partialUpdates>`;
    await this.start('CreateFilter', collector, args);
    return collector;
  }

  updates(collector: Ref, version: string): Promise<SoapResponse> {
    return this.call('WaitForUpdatesEx', collector, `<version>${version}</version>`);
  }

  /** Waits with a property collector until a task has ended, and returns the state of the task. */
  async finished(task: Ref): Promise<string> {
    const collector = await this.watch([task], 'info.state');
    let version = '';
    for (;;) {
      const { status, text } = await this.updates(collector, version);
      if (status !== 200) throw new Error(`WaitForUpdatesEx: ${faultOf({ status, text }) ?? status}`);
      const end = />(success|error)</.exec(text)?.[1];
      if (end !== undefined) return end;
      version = versionOf(text);
    }
  }

  async #retrieve(spec: string): Promise<string> {
    const response = await this.retrieve(spec);
    if (response.status === 200 && !response.text.includes('<missingSet>')) return response.text;
    throw new Error(`RetrievePropertiesEx: ${faultOf(response) ?? response.status}`);
  }

  retrieve(spec: string): Promise<SoapResponse> {
    return this.call('RetrievePropertiesEx', propertyCollector, `<specSet>${spec}</specSet><options/>`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }
}

export function xml(tag: string, { type, value }: Ref): string {
  return `<${tag} type="${type}">${value}</${tag}>`;
}

export function versionOf(text: string): string {
  return /<version>([^<]*)</.exec(text)?.[1] ?? '';
}

/**
 * Returns the type of the first fault in a response. It is either the fault with which the call failed, or a fault that
 * the response contains in place of a property.
 */
export function faultOf({ text }: SoapResponse): string | undefined {
  return /<(?:\w+Fault|fault) [^>]*\w+:type="(?:\w+:)?(\w+)"/.exec(text)?.[1];
}

/** Returns the property filter for one property of the objects. */
export function specOf(objects: readonly Ref[], path: string): string {
  const type = objects[0]?.type ?? '';
  return (
    `<propSet><type>${type}</type><pathSet>${path}</pathSet></propSet>` +
    objects.map((object) => `<objectSet>${xml('obj', object)}</objectSet>`).join('')
  );
}
