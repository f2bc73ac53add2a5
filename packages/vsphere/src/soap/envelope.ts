import { UnreadableAnswerError } from '../errors.ts';
import { type Field, typeNamed } from '../schema/schema.ts';
import type { Calls, DataObject, ManagedObjectReference } from '../vim25/vim25.generated.ts';
import { decode } from '../xml/decode.ts';
import { encode } from '../xml/encode.ts';
import { Reader } from '../xml/reader.ts';

export type Method = keyof Calls;
export type ArgsOf<M extends Method> = Calls[M]['args'];
export type ResultOf<M extends Method> = Calls[M]['result'];

/** A fault as the answer has it. */
interface SoapFault {
  readonly type: string;
  readonly message: string;
  readonly detail: DataObject;
}

export type Answer = { readonly result: unknown } | { readonly fault: SoapFault };

const HEAD =
  '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope' +
  ' xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"' +
  ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>';
const TAIL = '</soapenv:Body></soapenv:Envelope>';

/** The message that calls a method. @throws InvalidRequestError */
export function request<M extends Method>(
  method: M,
  self: ManagedObjectReference,
  args: ArgsOf<M>,
  version: string,
): string {
  const call = encode(method, `$${method}`, { ...args, _this: self }, version);
  return `${HEAD}<${method} xmlns="urn:vim25"${call.slice(method.length + 1)}${TAIL}`;
}

/** What an answer says. @throws UnreadableAnswerError */
export function answer(text: string, method: Method): Answer {
  const reader = new Reader(text);
  const found: { answer?: Answer } = {};
  reader.root();
  if (reader.name !== 'Envelope') throw new UnreadableAnswerError('the answer is not a SOAP message');
  reader.children(() => {
    if (reader.name !== 'Body') return reader.skip();
    reader.children(() => {
      if (reader.name === 'Fault') found.answer = { fault: fault(reader) };
      else if (reader.name === `${method}Response`) found.answer = { result: result(reader, method) };
      else reader.skip();
    });
  });
  if (found.answer === undefined) throw new UnreadableAnswerError(`the answer says nothing about ${method}`);
  return found.answer;
}

/** The decoder goes by the same schema as the types: what it gives is of its type, or missing. */
export function isResultOf<M extends Method>(method: M, result: unknown): result is ResultOf<M> {
  const declared = returned(method);
  return result !== undefined || declared === undefined || declared.isOptional;
}

function result(reader: Reader, method: Method): unknown {
  const response = decode(reader, `$${method}Response`);
  const value = isDataObject(response) && 'returnval' in response ? response.returnval : undefined;
  return value ?? (returned(method)?.isList ? [] : undefined);
}

function returned(method: Method): Field | undefined {
  return typeNamed(`$${method}Response`)?.fields[0];
}

/** It becomes part of a status and of log lines. */
const LONGEST_MESSAGE = 2_000;

function fault(reader: Reader): SoapFault {
  let message = '';
  let type = 'MethodFault';
  let detail: DataObject = {};
  reader.children(() => {
    if (reader.name === 'faultstring') message = reader.text().slice(0, LONGEST_MESSAGE);
    else if (reader.name !== 'detail') reader.skip();
    else
      reader.children(() => {
        type = reader.type ?? reader.name.replace(/Fault$/, '');
        const value = decode(reader, type);
        if (isDataObject(value)) detail = value;
      });
  });
  return { type, message, detail };
}

function isDataObject(value: unknown): value is DataObject {
  return typeof value === 'object' && value !== null;
}
