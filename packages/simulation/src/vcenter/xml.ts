import { escaped } from './codec.ts';

/* Answers as vCenter writes them. By hand, since most of what a history does is to write the same few again and again. */

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
  return escaped(value, 'an answer');
}

/** @param returned all that the answer gives, each in a `returnval` */
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
  const said = `<faultcode>ServerFaultCode</faultcode><faultstring>${text(message)}</faultstring>`;
  return `${HEAD}<soapenv:Fault>${said}${detail}</soapenv:Fault>${TAIL}`;
}

/** Values of properties, each the whole of its `val`. */
export const val = {
  string: (value: string) => `<val xsi:type="xsd:string">${text(value)}</val>`,
  int: (value: number) => `<val xsi:type="xsd:int">${value}</val>`,
  boolean: (value: boolean) => `<val xsi:type="xsd:boolean">${value}</val>`,
  word: (type: string, value: string) => `<val xsi:type="${type}">${value}</val>`,
  ref: ({ type, value }: Ref) => `<val xsi:type="ManagedObjectReference" type="${type}">${value}</val>`,
  list: (of: string, items: string) => `<val xsi:type="ArrayOf${of}">${items}</val>`,
} as const;
