import { KNOWN_VERSION } from '../vim25/schema.generated.ts';
import { Reader } from '../xml/reader.ts';

/** API version of the first request. Every supported vCenter understands it. */
export const OLDEST_VERSION = '6.7';

/** Whether `one` is a newer API version than `other`. */
export function isNewer(one: string, other: string): boolean {
  const [ones, others] = [one, other].map((version) => version.split('.').map(Number));
  for (let i = 0; i < Math.max(ones?.length ?? 0, others?.length ?? 0); i++) {
    const difference = (ones?.[i] ?? 0) - (others?.[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

/**
 * Returns the newest version that the server offers and the client knows, if any. A newer server also offers older
 * versions. If the client selects an older version, the server's responses contain only types of that version.
 */
export function negotiateVersion(offered: readonly string[]): string | undefined {
  return offered
    .filter((version) => /^\d+(\.\d+)*$/.test(version) && !isNewer(version, KNOWN_VERSION))
    .reduce<string | undefined>(
      (best, each) => (best === undefined || isNewer(each, best) ? each : best),
      undefined,
    );
}

/**
 * Returns the version for a server that does not list its versions: its own or the newest that the client knows,
 * whichever is older.
 */
export function cappedVersion(own: string): string {
  return negotiateVersion([own]) ?? KNOWN_VERSION;
}

/** Returns the vim25 versions in `/sdk/vimServiceVersions.xml`. @throws InvalidResponseError */
export function parseVersions(text: string): readonly string[] {
  const reader = new Reader(text);
  const all: string[] = [];
  reader.root();
  reader.children(() => {
    let name = '';
    const versions: string[] = [];
    reader.children(() => {
      if (reader.name === 'name') name = reader.text().trim();
      else if (reader.name === 'version') versions.push(reader.text().trim());
      else if (reader.name === 'priorVersions') reader.children(() => versions.push(reader.text().trim()));
      else reader.skip();
    });
    if (name === 'urn:vim25') all.push(...versions);
  });
  return all;
}
