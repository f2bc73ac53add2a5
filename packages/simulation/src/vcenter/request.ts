import { decode, Reader } from './codec.ts';
import type { Ref } from './xml.ts';

/** Typed access to the arguments of a call. Returns undefined for a missing or mistyped field. */
export class Fields {
  readonly #value: object;

  constructor(value: unknown) {
    this.#value = typeof value === 'object' && value !== null ? value : {};
  }

  text(name: string): string | undefined {
    const value = this.#at(name);
    return typeof value === 'string' ? value : undefined;
  }

  number(name: string): number | undefined {
    const value = this.#at(name);
    return typeof value === 'number' ? value : undefined;
  }

  flag(name: string): boolean {
    return this.#at(name) === true;
  }

  ref(name: string): Ref | undefined {
    return refIn(this.#at(name));
  }

  refs(name: string): readonly Ref[] {
    return this.#list(name).flatMap((each) => refIn(each) ?? []);
  }

  texts(name: string): readonly string[] {
    return this.#list(name).filter((each) => typeof each === 'string');
  }

  inner(name: string): Fields {
    return new Fields(this.#at(name));
  }

  each(name: string): readonly Fields[] {
    return this.#list(name).map((each) => new Fields(each));
  }

  #list(name: string): readonly unknown[] {
    const value = this.#at(name);
    return Array.isArray(value) ? value : [];
  }

  #at(name: string): unknown {
    return Reflect.get(this.#value, name);
  }
}

export interface Call {
  readonly method: string;
  readonly self: Ref;
  readonly args: Fields;
}

const NO_REF: Ref = { type: '', value: '' };

/** Decodes the call in a SOAP message with the codec of the vSphere client. */
export function callIn(body: string): Call {
  const reader = new Reader(body);
  let call: Call = { method: '', self: NO_REF, args: new Fields(undefined) };
  reader.root();
  reader.children(() => {
    if (reader.name !== 'Body') return reader.skip();
    reader.children(() => {
      const method = reader.name;
      const args = new Fields(decode(reader, `$${method}`));
      call = { method, self: args.ref('_this') ?? NO_REF, args };
    });
  });
  return call;
}

const BODY = '<soapenv:Body><';

/** Returns the method of a SOAP message without decoding it. */
export function methodIn(body: string): string {
  const from = body.indexOf(BODY) + BODY.length;
  return body.slice(from, body.indexOf(' ', from));
}

function refIn(value: unknown): Ref | undefined {
  const isRef =
    typeof value === 'object' &&
    value !== null &&
    'type' in value &&
    typeof value.type === 'string' &&
    'value' in value &&
    typeof value.value === 'string';
  return isRef ? { type: String(value.type), value: String(value.value) } : undefined;
}
