import { Random } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { randomValue } from '../../test/values.ts';
import { InvalidRequestError, InvalidResponseError, VsphereError } from '../errors.ts';
import { isKindOf, nearestKnownType, typeNamed, typeNames } from '../schema/schema.ts';
import { buildRequest, parseResponse } from '../soap/envelope.ts';
import { KNOWN_VERSION } from '../vim25/schema.generated.ts';
import { decode } from './decode.ts';
import { encode } from './encode.ts';
import { Reader } from './reader.ts';

const NAMESPACES =
  'xmlns="urn:vim25" xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"';

function read(xml: string, type: string): unknown {
  const reader = new Reader(xml);
  reader.root();
  return decode(reader, type);
}

/** Wraps XML in an element that declares the prefixes. */
function within(xml: string): string {
  return `<root ${NAMESPACES}>${xml}</root>`;
}

function readWithin(xml: string, type: string): unknown {
  const reader = new Reader(within(xml));
  let value: unknown;
  reader.root();
  reader.children(() => {
    value = decode(reader, type);
  });
  return value;
}

function written(type: string, value: unknown, version = KNOWN_VERSION): string {
  return encode('x', type, value, version);
}

/** Returns the names of the child elements in order. */
function elementsIn(xml: string): string[] {
  const names: string[] = [];
  const reader = new Reader(xml);
  reader.root();
  reader.children(() => {
    names.push(reader.name);
    reader.skip();
  });
  return names;
}

test('decoding an encoded random value of any type returns the same value', () => {
  for (const type of typeNames()) {
    for (let seed = 0; seed < 12; seed++) {
      const value = randomValue(new Random(seed), type);
      expect(readWithin(written(type, value), type), `${type}, seed ${seed}`).toEqual(value);
    }
  }
});

test('elements are encoded in the order of the schema, independent of the order of keys', () => {
  for (const type of typeNames()) {
    const value = randomValue(new Random(1), type);
    const order = (typeNamed(type)?.fields ?? []).map(({ name }) => name);
    const places = elementsIn(within(written(type, value)).replace(/^<root [^>]*>|<\/root>$/g, '')).map(
      (name) => order.indexOf(name),
    );
    expect(places, type).toEqual(places.toSorted((one, other) => one - other));
  }
});

describe('the order of elements is that of the WSDL', () => {
  // The orders are taken from VMware's Java bindings, which are generated from the WSDL and not from this package's
  // schema.
  test.each([
    ['VirtualMachineCloneSpec', 'location template config customization powerOn snapshot memory'],
    [
      'VirtualMachineRelocateSpec',
      'service folder datastore diskMoveType pool host disk transform deviceChange profile',
    ],
    ['PropertyFilterSpec', 'propSet objectSet reportMissingObjectsInResults'],
    ['PropertySpec', 'type all pathSet'],
    ['ObjectSpec', 'obj skip selectSet'],
    ['TraversalSpec', 'name type path skip selectSet'],
    [
      'VirtualMachineConfigSpec',
      'changeVersion name version createDate uuid instanceUuid guestId annotation files tools flags powerOpInfo ' +
        'rebootPowerOff numCPUs numCoresPerSocket memoryMB memoryHotAddEnabled cpuHotAddEnabled deviceChange ' +
        'cpuAllocation memoryAllocation cpuAffinity extraConfig swapPlacement bootOptions vAppConfig repConfig ' +
        'firmware managedBy vmProfile crypto sevEnabled virtualNuma pmem deviceGroups metroFtHostGroup',
    ],
    ['WaitOptions', 'maxWaitSeconds maxObjectUpdates'],
    ['OptionValue', 'key value'],
    [
      'VirtualDisk',
      'key deviceInfo backing connectable slotInfo controllerKey unitNumber capacityInKB capacityInBytes shares',
    ],
    ['$CloneVM_Task', '_this folder name spec'],
    ['$FindByUuid', '_this datacenter uuid vmSearch instanceUuid'],
    ['$CreateSnapshot_Task', '_this name description memory quiesce'],
    ['$Login', '_this userName password locale'],
  ])('the elements of %s are in the order of the WSDL', (type, order) => {
    const known = (typeNamed(type)?.fields ?? []).map(({ name }) => name);
    const expected = order.split(' ');
    expect(known.filter((name) => expected.includes(name))).toEqual(expected);
  });

  test('VirtualMachineConfigSpec is encoded in the order of the WSDL', () => {
    const spec = { extraConfig: [], annotation: 'a', memoryMB: 1, numCPUs: 1, instanceUuid: 'u', name: 'n' };
    expect(elementsIn(written('VirtualMachineConfigSpec', spec))).toEqual(
      ['name', 'instanceUuid', 'annotation', 'numCPUs', 'memoryMB'], //
    );
  });
});

test('buildRequest creates the exact SOAP message', () => {
  const template = { type: 'VirtualMachine', value: 'vm-1' };
  const folder = { type: 'Folder', value: 'group-v3' };
  const spec = {
    powerOn: true,
    config: { numCPUs: 2, extraConfig: [{ _type: 'OptionValue', value: 'a & b', key: 'owner' }] },
    template: false,
    location: { pool: { type: 'ResourcePool', value: 'resgroup-8' } },
  };
  expect(buildRequest('CloneVM_Task', template, { name: '<x>', spec, folder }, '7.0')).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>' +
      '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"' +
      ' xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">' +
      '<soapenv:Body><CloneVM_Task xmlns="urn:vim25"><_this type="VirtualMachine">vm-1</_this>' +
      '<folder type="Folder">group-v3</folder><name>&lt;x&gt;</name>' +
      '<spec><location><pool type="ResourcePool">resgroup-8</pool></location><template>false</template>' +
      '<config><numCPUs>2</numCPUs><extraConfig xsi:type="OptionValue"><key>owner</key>' +
      '<value xsi:type="xsd:string">a &amp; b</value></extraConfig></config><powerOn>true</powerOn></spec>' +
      '</CloneVM_Task></soapenv:Body></soapenv:Envelope>',
  );
});

describe('with an API version older than some fields', () => {
  const newer = (typeNamed('VirtualMachineConfigSpec')?.fields ?? []).filter(
    ({ since }) => since !== undefined,
  );

  test('a field of VirtualMachineConfigSpec that is newer than the API version is rejected', () => {
    expect(newer.length).toBeGreaterThan(5);
    for (const field of newer) {
      const one = randomValue(new Random(1), field.type);
      const spec = { [field.name]: field.isList ? [one] : one };
      expect(() => written('VirtualMachineConfigSpec', spec, '6.7')).toThrow(InvalidRequestError);
    }
    const [{ name = '', since = '', type = '' } = {}] = newer.filter(({ type: kind }) => kind === 'boolean');
    const spec = { [name]: randomValue(new Random(1), type) };
    expect(() => written('VirtualMachineConfigSpec', spec, '6.7')).toThrow(
      `VirtualMachineConfigSpec.${name} requires API version ${since}, but version 6.7 is used with this vCenter`,
    );
    expect(written('VirtualMachineConfigSpec', spec, since)).toContain(name);
  });

  test('the required fields of VirtualMachineCloneSpec are accepted with API version 6.7', () => {
    const spec = Object.fromEntries(
      (typeNamed('VirtualMachineCloneSpec')?.fields ?? []).flatMap(({ name, isOptional, type }) =>
        isOptional ? [] : [[name, randomValue(new Random(3), type, 9)]],
      ),
    );
    expect(written('VirtualMachineCloneSpec', spec, '6.7')).toContain('<powerOn>');
  });
});

describe('decode', () => {
  test('decode recognizes xsi:type by its namespace instead of its prefix', () => {
    const xml =
      '<v XMLSchema-instance:type="ManagedObjectReference" type="Folder"' +
      ' xmlns:XMLSchema-instance="http://www.w3.org/2001/XMLSchema-instance">group-1</v>';
    expect(read(xml, 'anyType')).toEqual({ type: 'Folder', value: 'group-1' });
    expect(read('<v xsi:type="OptionValue" xmlns:xsi="urn:other"><key>k</key></v>', 'OptionValue')).toEqual({
      key: 'k',
    });
    expect(readWithin('<v xmlns:xsi="urn:other" xsi:type="Description"/><v/>', 'OptionValue')).toEqual({});
    expect(
      readWithin(
        '<a xmlns:xsi="urn:other" xsi:type="x"/><v xsi:type="vim:OptionValue"><key>k</key></v>',
        'anyType',
      ),
    ).toEqual({ _type: 'OptionValue', key: 'k' });
  });

  test('decode reads prefixed elements, comments, CDATA sections, entities and line ends', () => {
    const xml =
      '<?xml version="1.0"?><!-- > --><n:v xmlns:n="urn:vim25" a=\'>\' ><n:key>a<!-- b -->&#65;&#x42;<![CDATA[<&amp;>]]>\r\nz</n:key ></n:v>';
    expect(read(xml, 'OptionValue')).toEqual({ key: 'aAB<&amp;>\nz' });
    expect(readWithin('<v>&lt;&gt;&amp;&quot;&apos;</v>', 'string')).toBe('<>&"\'');
    expect(readWithin('<v><key/><value xsi:nil="true"/></v>', 'OptionValue')).toEqual({ key: '' });
  });

  test('decode returns lists for ArrayOf types', () => {
    const list = (type: string, xml: string) => readWithin(`<val xsi:type="${type}">${xml}</val>`, 'anyType');
    expect(list('ArrayOfString', '<string>a</string><string>b</string>')).toEqual(['a', 'b']);
    expect(list('ArrayOfInt', '<int>1</int>')).toEqual([1]);
    expect(
      list(
        'ArrayOfManagedObjectReference',
        '<ManagedObjectReference type="Task">t-1</ManagedObjectReference>',
      ),
    ).toEqual([{ type: 'Task', value: 't-1' }]);
    expect(
      list('ArrayOfOptionValue', '<OptionValue xsi:type="OptionValue"><key>k</key></OptionValue>'),
    ).toEqual([{ _type: 'OptionValue', key: 'k' }]);
    expect(list('ArrayOfVirtualDevice', '')).toEqual([]);
    expect(list('VirtualMachinePowerState', 'poweredOn')).toBe('poweredOn');
  });

  test('decode reads an unknown type as its nearest known base type, and keeps the name of the unknown type', () => {
    expect(nearestKnownType('VirtualSriovEthernetCard')?.name).toBe('VirtualEthernetCard');
    const known = readWithin(
      '<d xsi:type="VirtualSriovEthernetCard"><key>7</key><macAddress>m</macAddress><allowGuestOSMtuChange>true</allowGuestOSMtuChange></d>',
      'VirtualDevice',
    );
    expect(known).toEqual({ _type: 'VirtualSriovEthernetCard', key: 7, macAddress: 'm' });
    const unknown = readWithin(
      '<d xsi:type="VirtualTeleporter"><key>7</key><aim>x</aim></d>',
      'VirtualDevice',
    );
    expect(unknown).toEqual({ _type: 'VirtualTeleporter', key: 7 });
    expect(readWithin('<d xsi:type="Unknown"><a><b/></a></d>', 'anyType')).toEqual({ _type: 'Unknown' });
    expect(isKindOf('InvalidPowerStateFault', 'InvalidState')).toBe(true);
    expect(() => written('VirtualDevice', unknown)).toThrow(
      'VirtualTeleporter, which this client does not know',
    );
  });
});

describe('invalid values', () => {
  test.each([
    ['a control character', 'string', '\u0000'],
    ['an unpaired surrogate', 'string', '\ud83d'],
    ['a fraction for an int', 'int', 1.5],
    ['an int that is too large', 'int', 2 ** 31],
    ['a long that is not exact', 'long', 2 ** 60],
    ['text for a number', 'int', '1'],
    ['a missing field', 'PropertyFilterSpec', { propSet: [] }],
    ['an unknown field', 'OptionValue', { key: 'k', value: 1, vaule: 1 }],
    ['text for a reference', 'ManagedObjectReference', 'vm-1'],
    ['a list for a single value', 'OptionValue', { key: ['k'], value: 1 }],
    ['a single value for a list', 'PropertySpec', { type: 'Task', pathSet: 'info' }],
    ['a value of unknown type', 'OptionValue', { key: 'k', value: {} }],
  ])('encoding rejects %s', (_, type, value) => {
    expect(() => written(type, value)).toThrow(InvalidRequestError);
  });

  test('the error for an invalid value does not contain the value', () => {
    const _this = { type: 'SessionManager', value: 's' };
    for (const password of [['secret'], 'secret\u0000', { secret: 'secret' }])
      expect(() => written('$Login', { _this, userName: 'u', password })).toThrow(
        /^Login.password (?!.*secret)/,
      );
  });
});

describe('an invalid response gives a typed error', () => {
  const valid = buildRequest(
    'CloneVM_Task',
    { type: 'VirtualMachine', value: 'vm-1' },
    {
      folder: { type: 'Folder', value: 'f' },
      name: 'a &amp; <b>',
      spec: {
        location: {},
        template: false,
        powerOn: true,
        config: { extraConfig: [{ _type: 'OptionValue', key: 'k', value: 'v' }] },
      },
    },
    '8.0',
  ).replaceAll('CloneVM_Task', 'RetrievePropertiesExResponse');

  test.each([
    ['an empty response', ''],
    ['plain text', 'HTTP/1.1 404 not found'],
    ['a page of a proxy', '<!DOCTYPE html><html><body>502</body></html>'],
    ['entity declarations', '<!DOCTYPE x [<!ENTITY a "b">]><Envelope>&a;</Envelope>'],
    [
      'an unknown entity',
      '<Envelope><Body><Fault><faultstring>&boo;</faultstring></Fault></Body></Envelope>',
    ],
    [
      'a tag that declares a hundred thousand prefixes for XSI',
      `<Envelope ${Array.from({ length: 100_000 }, (_, i) => `xmlns:p${i}="http://www.w3.org/2001/XMLSchema-instance"`).join(' ')}/>`,
    ],
    ['a missing end tag', '<Envelope><Body>'],
    ['a wrong end tag', '<Envelope><Body></Envelope></Body>'],
    ['a response to another method', '<Envelope><Body><CurrentTimeResponse/></Body></Envelope>'],
    ['a comment without an end', '<Envelope><!-- '],
    ['an attribute without quotes', '<Envelope a=b></Envelope>'],
    ['only an end tag', '</Envelope>'],
    ['too deep nesting', `<Envelope>${'<a>'.repeat(100_000)}`],
    [
      'text for a number',
      '<Envelope><Body><LoginResponse><returnval><callCount>x</callCount></returnval></LoginResponse></Body></Envelope>',
    ],
  ])('an invalid response gives a typed error: %s', (_, text) => {
    expect(() => parseResponse(text, text.includes('Login') ? 'Login' : 'RetrievePropertiesEx')).toThrow(
      InvalidResponseError,
    );
  });

  test('a message that was truncated or changed at random is parsed or gives a typed error', () => {
    const outcomes = { parsed: 0, rejected: 0 };
    for (let seed = 0; seed < 4_000; seed++) {
      const random = new Random(seed);
      let text = valid;
      for (let i = random.below(3); i >= 0; i--) {
        const at = random.below(text.length);
        const length = random.below(12);
        const put = random.pick([
          '',
          '<',
          '>',
          '&',
          '"',
          "'",
          '/',
          '</',
          '<!--',
          '<![CDATA[',
          '\u0000',
          '=',
          ' xmlns:xsi="x"',
        ]);
        text = random.chance(0.2) ? text.slice(0, at) : text.slice(0, at) + put + text.slice(at + length);
      }
      try {
        parseResponse(text, 'RetrievePropertiesEx');
        outcomes.parsed++;
      } catch (error) {
        expect(error, `seed ${seed}`).toBeInstanceOf(VsphereError);
        outcomes.rejected++;
      }
    }
    expect(Math.min(outcomes.parsed, outcomes.rejected)).toBeGreaterThan(100);
  });
});

test('names of inherited properties of Object are not accepted as numbers', () => {
  for (const word of ['toString', 'constructor', '__proto__'])
    expect(() => readWithin(`<v>${word}</v>`, 'double')).toThrow(InvalidResponseError);
});

test('16 prefixes for the XSI namespace are accepted, and a type name that repeats `Fault` 200,000 times is unknown', () => {
  const prefixes = Array.from(
    { length: 15 },
    (_, i) => `xmlns:p${i}="http://www.w3.org/2001/XMLSchema-instance"`,
  ).join(' ');
  expect(readWithin(`<v ${prefixes} p7:type="xsd:int">1</v>`, 'anyType')).toBe(1);
  expect(nearestKnownType('Fault'.repeat(200_000))).toBeUndefined();
});

test.each(['toString', 'valueOf', 'constructor', '__proto__'])(
  'the entity &%s;, named like an inherited property of Object, is rejected',
  (name) => {
    const text = `<Envelope><Body><Fault><faultstring>&${name};</faultstring></Fault></Body></Envelope>`;
    expect(() => parseResponse(text, 'RetrievePropertiesEx')).toThrow(InvalidResponseError);
  },
);

describe('texts of 10 million characters', () => {
  const long = 'x'.repeat(10_000_000);

  test('an element name of 10 million characters is rejected', () => {
    expect(() => readWithin(`<${long}/>`, 'anyType')).toThrow('a name has more than 256 characters');
  });

  test('an xsi:type of 10 million characters is treated as an unknown type', () => {
    expect(readWithin(`<v xsi:type="${long}">text</v>`, 'anyType')).toBe('text');
  });

  test('a fault message of 10 million characters is truncated', () => {
    const text = `<Envelope><Body><Fault><faultstring>${long}</faultstring></Fault></Body></Envelope>`;
    expect(parseResponse(text, 'CurrentTime')).toMatchObject({ fault: { message: 'x'.repeat(2_000) } });
  });

  test('an attribute of 10 million characters is accepted before xsi:type', () => {
    expect(readWithin(`<v a="${long}" xsi:type="xsd:int">1</v>`, 'anyType')).toBe(1);
  });
});
