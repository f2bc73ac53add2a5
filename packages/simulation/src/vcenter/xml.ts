import { escaped } from './codec.ts';

/* Writes vCenter's responses. Hand-written for speed: a run spends most of its time on a few kinds of responses. */

export interface Ref {
  readonly type: string;
  readonly value: string;
}

const HEAD =
  '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope' +
  ' xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"' +
  ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>';
const TAIL = '</soapenv:Body></soapenv:Envelope>';

export function text(value: string): string {
  return escaped(value, 'a response');
}

/** Returns the SOAP response of a method. @param returned the results of the method, each in a `returnval` element */
export function response(method: string, returned: string): string {
  return `${HEAD}<${method}Response xmlns="urn:vim25">${returned}</${method}Response>${TAIL}`;
}

export function returnval(content: string): string {
  return `<returnval>${content}</returnval>`;
}

export function reference(tag: string, { type, value }: Ref): string {
  return `<${tag} type="${type}">${value}</${tag}>`;
}

export function faultBody(type: string, fields: string, message: string): string {
  const detail = `<detail><${type}Fault xmlns="urn:vim25" xsi:type="${type}">${fields}</${type}Fault></detail>`;
  const head = `<faultcode>ServerFaultCode</faultcode><faultstring>${text(message)}</faultstring>`;
  return `${HEAD}<soapenv:Fault>${head}${detail}</soapenv:Fault>${TAIL}`;
}

/** Writes property values, each as a complete `val` element. */
export const val = {
  string: (value: string) => `<val xsi:type="xsd:string">${text(value)}</val>`,
  int: (value: number) => `<val xsi:type="xsd:int">${value}</val>`,
  boolean: (value: boolean) => `<val xsi:type="xsd:boolean">${value}</val>`,
  word: (type: string, value: string) => `<val xsi:type="${type}">${value}</val>`,
  ref: ({ type, value }: Ref) => `<val xsi:type="ManagedObjectReference" type="${type}">${value}</val>`,
  list: (of: string, items: string) => `<val xsi:type="ArrayOf${of}">${items}</val>`,
} as const;
