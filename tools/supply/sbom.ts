import { createHash } from 'node:crypto';
import type { ShippedPackage } from './lock.ts';

/**
 * Returns the software bill of materials of the shipped packages, in CycloneDX 1.6. The same package-lock.json gives
 * the same bill, because the bill contains neither a time nor a random serial number.
 * @param packages as `shippedPackages` returns them
 * @param name package that the document describes: `@vmwright/operator`
 */
export function cycloneDx(packages: readonly ShippedPackage[], name: string): object {
  const subject = packages.find((each) => each.name === name);
  if (subject === undefined) throw new Error(`${name} is not one of the shipped packages`);
  const others = packages.filter((each) => each !== subject);
  const content = {
    metadata: { component: { ...component(subject), type: 'application' } },
    components: others.map(component),
    dependencies: packages.map(({ dependencies, ...each }) => ({
      ref: reference(each),
      dependsOn: dependencies.map((id) => reference(split(id))),
    })),
  };
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`,
    version: 1,
    ...content,
  };
}

function component(shipped: ShippedPackage): object {
  const { name, version, licence, integrity } = shipped;
  const [group, plain] = name.startsWith('@') ? name.split('/') : [undefined, name];
  return {
    type: 'library',
    'bom-ref': reference(shipped),
    ...(group && { group }),
    name: plain,
    version,
    purl: reference(shipped),
    ...(licence && {
      licenses: [/[\s(]/.test(licence) ? { expression: licence } : { license: { id: licence } }],
    }),
    ...(integrity && { hashes: [{ alg: 'SHA-512', content: sha512In(integrity) }] }),
  };
}

/** Returns the package URL, which is also the reference of the component. */
function reference({ name, version }: Pick<ShippedPackage, 'name' | 'version'>): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function split(id: string): Pick<ShippedPackage, 'name' | 'version'> {
  const at = id.lastIndexOf('@');
  return { name: id.slice(0, at), version: id.slice(at + 1) };
}

function sha512In(integrity: string): string {
  return Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex');
}

/** Returns a UUID (version 8, of a custom scheme) that is derived from the text. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
