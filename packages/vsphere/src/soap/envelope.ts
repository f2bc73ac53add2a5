import { InvalidResponseError } from '../errors.ts';
import { type Field, typeNamed } from '../schema/schema.ts';
import type { Calls, DataObject, ManagedObjectReference } from '../vim25/vim25.generated.ts';
import { decode } from '../xml/decode.ts';
import { encode } from '../xml/encode.ts';
import { Reader } from '../xml/reader.ts';

export type Method = keyof Calls;
export type ArgsOf<M extends Method> = Calls[M]['args'];
export type ResultOf<M extends Method> = Calls[M]['result'];

/** A fault as the response contains it. */
interface SoapFault {
  readonly type: string;
  readonly message: string;
  readonly detail: DataObject;
}

export type ParsedResponse = { readonly result: unknown } | { readonly fault: SoapFault };

const HEAD =
  '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope' +
  ' xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"' +
  ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>';
const TAIL = '</soapenv:Body></soapenv:Envelope>';

/** Returns the SOAP message that calls a method. @throws InvalidRequestError */
export function buildRequest<M extends Method>(
  method: M,
  self: ManagedObjectReference,
  args: ArgsOf<M>,
  version: string,
): string {
  const call = encode(method, `$${method}`, { ...args, _this: self }, version);
  return `${HEAD}<${method} xmlns="urn:vim25"${call.slice(method.length + 1)}${TAIL}`;
}

/** Parses the SOAP response to a call. @throws InvalidResponseError */
export function parseResponse(text: string, method: Method): ParsedResponse {
  const reader = new Reader(text);
  const found: { response?: ParsedResponse } = {};
  reader.root();
  if (reader.name !== 'Envelope') throw new InvalidResponseError('the response is not a SOAP message');
  reader.children(() => {
    if (reader.name !== 'Body') return reader.skip();
    reader.children(() => {
      if (reader.name === 'Fault') found.response = { fault: decodeFault(reader) };
      else if (reader.name === `${method}Response`) found.response = { result: decodeResult(reader, method) };
      else reader.skip();
    });
  });
  if (found.response === undefined)
    throw new InvalidResponseError(`the response contains no ${method}Response and no fault`);
  return found.response;
}

/**
 * Whether a decoded result is valid for the method. Checks only that a required result is present: the decoder
 * ensures its type.
 */
export function isResultOf<M extends Method>(method: M, result: unknown): result is ResultOf<M> {
  const declared = returnField(method);
  return result !== undefined || declared === undefined || declared.isOptional;
}

function decodeResult(reader: Reader, method: Method): unknown {
  const response = decode(reader, `$${method}Response`);
  const value = isDataObject(response) && 'returnval' in response ? response.returnval : undefined;
  return value ?? (returnField(method)?.isList ? [] : undefined);
}

function returnField(method: Method): Field | undefined {
  return typeNamed(`$${method}Response`)?.fields[0];
}

/** Maximum number of characters of a fault's message. The message becomes part of status conditions and log lines. */
const MAX_MESSAGE_LENGTH = 2_000;

function decodeFault(reader: Reader): SoapFault {
  let message = '';
  let type = 'MethodFault';
  let detail: DataObject = {};
  reader.children(() => {
    if (reader.name === 'faultstring') message = reader.text().slice(0, MAX_MESSAGE_LENGTH);
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
